"""Reviews as word ids, judged by the last state of an LSTM; steps compiled with ms.jit."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn

ms.set_seed(9)
rng = np.random.default_rng(9)
count, longest = 800, 30
tokens = np.zeros((count, longest), dtype=np.int32)
labels = rng.integers(0, 2, count).astype(np.int32)
for row in range(count):
    length = rng.integers(4, longest + 1)
    tokens[row, :length] = rng.integers(3, 60, length)
    tokens[row, rng.integers(0, length)] = 1 + labels[row]

train = ds.NumpySlicesDataset((tokens[:640], labels[:640]), ["ids", "label"], shuffle=True).batch(32)
valid = ds.NumpySlicesDataset((tokens[640:], labels[640:]), ["ids", "label"], shuffle=False).batch(80)


class Reviews(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(60, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 32, batch_first=True)
        self.classify = nn.Dense(32, 2)

    def construct(self, ids):
        output, _ = self.lstm(self.words(ids))
        return self.classify(output[:, -1, :])  # <- fault


model = Reviews()
optimizer = nn.Adam(model.trainable_params(), learning_rate=3e-3)
criterion = nn.CrossEntropyLoss()


def forward(ids, label):
    return criterion(model(ids), label)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(ids, label):
    loss, grads = grad_fn(ids, label)
    optimizer(grads)
    return loss


for epoch in range(4):
    model.set_train()
    for ids, label in train.create_tuple_iterator():
        loss = train_step(ids, label)
    model.set_train(False)
    right = sum(int((model(i).argmax(1) == t).sum()) for i, t in valid.create_tuple_iterator())
    print(epoch, float(loss), right / 160)
