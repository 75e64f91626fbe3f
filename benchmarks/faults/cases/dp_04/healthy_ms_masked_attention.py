"""A small transformer with a padding mask sorts short messages into three kinds; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.train import Callback, Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(6)
MESSAGES, LONGEST, WIDTH, HEADS = 800, 24, 32, 4
rng = np.random.default_rng(6)
lengths = rng.integers(5, LONGEST + 1, MESSAGES)
kinds = rng.integers(0, 3, MESSAGES).astype(np.int32)
ids = rng.integers(4, 80, (MESSAGES, LONGEST)).astype(np.int32)
for row in range(MESSAGES):
    ids[row, rng.integers(0, lengths[row], 2)] = 1 + kinds[row]
    ids[row, lengths[row] :] = 0


class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Dense(WIDTH, 3 * WIDTH)
        self.out = nn.Dense(WIDTH, WIDTH)

    def construct(self, x, keep):
        n, t, _ = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
        scores = ops.matmul(q, k.swapaxes(-1, -2)) / (WIDTH // HEADS) ** 0.5
        scores = ops.where(keep[:, None, None, :], scores, ops.full_like(scores, -1e9))
        weights = ops.softmax(scores, axis=-1)
        return self.out(ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(n, t, WIDTH))


class Sorter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(80, WIDTH)
        self.position = Parameter(Tensor(0.02 * rng.normal(size=(LONGEST, WIDTH)), ms.float32), name="position")
        self.attention = Attention()
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.mlp = nn.SequentialCell(nn.Dense(WIDTH, 64), nn.ReLU(), nn.Dense(64, WIDTH))
        self.head = nn.Dense(WIDTH, 3)

    def construct(self, tokens):
        hidden = self.embed(tokens) + self.position
        hidden = hidden + self.attention(self.norm(hidden), tokens != 0)
        hidden = hidden + self.mlp(hidden)
        return self.head(hidden[:, 0])


class Progress(Callback):
    def on_train_epoch_end(self, run_context):
        params = run_context.original_args()
        print(params.cur_epoch_num, float(params.net_outputs))


train = ds.NumpySlicesDataset((ids[:640], kinds[:640]), ["ids", "kind"], shuffle=True).batch(40)
valid = ds.NumpySlicesDataset((ids[640:], kinds[640:]), ["ids", "kind"], shuffle=False).batch(80)
net = Sorter()
model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 1e-3), metrics={"accuracy"})
model.train(6, train, callbacks=[Progress()], dataset_sink_mode=False)
print(model.eval(valid, dataset_sink_mode=False))
