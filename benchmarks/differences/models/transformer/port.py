"""A small causal language model with its attention written out, ported to MindSpore."""

import math

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import Normal
from mindspore.experimental import optim

VOCAB, LENGTH, WIDTH, HEADS, DEPTH = 40, 24, 32, 4, 2
STEPS, BATCH = 80, 16

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(5)


def make_text(size=6000):
    """Each word is followed by one of three words of its own, sometimes by any."""
    rng = np.random.default_rng(0)
    followers = rng.integers(0, VOCAB, (VOCAB, 3))
    text = [0]
    for _ in range(size - 1):
        text.append(followers[text[-1], rng.integers(3)] if rng.random() < 0.9 else rng.integers(VOCAB))
    return np.array(text, np.int32)


class CausalSelfAttention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Dense(WIDTH, 3 * WIDTH)
        self.proj = nn.Dense(WIDTH, WIDTH)
        self.future = Tensor(np.triu(np.ones((LENGTH, LENGTH)), 1).astype(bool))

    def construct(self, x):
        b, t, c = x.shape
        qkv = self.qkv(x).reshape(b, t, 3, HEADS, c // HEADS).transpose(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = ops.matmul(q, k.swapaxes(-2, -1)) / math.sqrt(c // HEADS)
        weights = ops.softmax(scores.masked_fill(self.future, -1e9), -1)
        return self.proj(ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(b, t, c))


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.attn = CausalSelfAttention()
        self.ln2 = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.fc = nn.Dense(WIDTH, 4 * WIDTH)
        self.act = nn.GELU(approximate=False)
        self.proj = nn.Dense(4 * WIDTH, WIDTH)
        self.drop = nn.Dropout(p=0.1)

    def construct(self, x):
        x = x + self.drop(self.attn(self.ln1(x)))
        return x + self.drop(self.proj(self.act(self.fc(self.ln2(x)))))


class LanguageModel(nn.Cell):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, WIDTH, embedding_table=Normal(0.02))
        self.wpe = nn.Embedding(LENGTH, WIDTH, embedding_table=Normal(0.02))
        self.blocks = nn.CellList([Block() for _ in range(DEPTH)])
        self.ln_f = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.head = nn.Dense(WIDTH, VOCAB)
        self.places = Tensor(np.arange(LENGTH, dtype=np.int32))

    def construct(self, ids):
        x = self.wte(ids) + self.wpe(self.places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


text = make_text()
rng = np.random.default_rng(11)
model = LanguageModel()
loss_fn = nn.CrossEntropyLoss(reduction="mean", label_smoothing=0.0)
optimizer = optim.AdamW(model.trainable_params(), lr=2e-3, weight_decay=0.1)
scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[30, 60], gamma=0.4)


def forward(ids, target):
    logits = model(ids)
    return loss_fn(logits.reshape(-1, VOCAB), target.reshape(-1))


grad_fn = ms.value_and_grad(forward, None, model.trainable_params())


@ms.jit
def train_step(ids, target):
    loss, grads = grad_fn(ids, target)
    grads = ops.clip_by_global_norm(grads, 0.25)
    optimizer(grads)
    return loss


model.set_train()
for step in range(STEPS):
    rows = rng.integers(0, len(text) - LENGTH, BATCH)[:, None] + np.arange(LENGTH)
    loss = train_step(Tensor(text[rows]), Tensor(text[rows + 1]))
    scheduler.step()
    if step % 10 == 0:
        print(f"step {step}: loss {float(loss):.4f}")
