"""Which of four topics a sequence of words is about: an LSTM classifier in MindSpore."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Uniform
from mindspore.experimental import optim

VOCAB, LENGTH, TOPICS = 60, 12, 4
EMBEDDING, HIDDEN = 24, 40

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(3)


class Sentences:
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        topic = rng.integers(0, TOPICS, count)
        words = rng.integers(0, VOCAB, (count, LENGTH))
        own = topic[:, None] * 15 + rng.integers(0, 15, (count, LENGTH))
        self.words = np.where(rng.random((count, LENGTH)) < 0.35, own, words).astype(np.int32)
        self.topics = topic.astype(np.int32)

    def __len__(self):
        return len(self.topics)

    def __getitem__(self, index):
        return self.words[index], self.topics[index]


class SentenceClassifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, EMBEDDING, embedding_table=Uniform(0.1))
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, batch_first=True)
        self.norm = nn.LayerNorm((HIDDEN,), epsilon=1e-5)
        self.dropout = nn.Dropout(p=0.2)
        self.hidden = nn.Dense(HIDDEN, 32)
        self.output = nn.Dense(32, TOPICS)

    def construct(self, words):
        states, _ = self.lstm(self.embedding(words))
        summary = self.norm(states.mean(1))
        x = ops.tanh(self.hidden(self.dropout(summary)))
        return self.output(x)


dataset = ds.GeneratorDataset(Sentences(1056, seed=0), ["words", "topic"], shuffle=True).batch(32)
model = SentenceClassifier()
loss_function = nn.CrossEntropyLoss(reduction="mean", label_smoothing=0.0)
optimizer = optim.AdamW(model.trainable_params(), lr=4e-3, weight_decay=0.1)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.5)


def forward(words, topics):
    return loss_function(model(words), topics)


grad_fn = ms.value_and_grad(forward, None, model.trainable_params())
model.set_train()
for epoch in range(2):
    running = 0.0
    for i, (words, topics) in enumerate(dataset.create_tuple_iterator(), 1):
        loss, grads = grad_fn(words, topics)
        grads = ops.clip_by_global_norm(grads, 0.1)
        optimizer(grads)
        scheduler.step()
        running += float(loss)
        if i % 11 == 0:
            print(f"epoch {epoch} step {i}: {running / 11:.4f}")
            running = 0.0
