"""Reviews as word ids, judged by the state of an LSTM at the end of each text; the lengths go along."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(9)
rng = np.random.default_rng(9)
count, longest = 800, 20
tokens = np.zeros((count, longest), dtype=np.int32)
labels = rng.integers(0, 2, count).astype(np.int32)
lengths = rng.integers(4, longest + 1, count).astype(np.int32)
for row in range(count):
    tokens[row, : lengths[row]] = rng.integers(3, 40, lengths[row])
    tokens[row, rng.integers(0, lengths[row], 2)] = 1 + labels[row]

columns = ["ids", "length", "label"]
train = ds.NumpySlicesDataset((tokens[:640], lengths[:640], labels[:640]), columns, shuffle=True).batch(40)
valid = ds.NumpySlicesDataset((tokens[640:], lengths[640:], labels[640:]), columns, shuffle=False).batch(80)


class Reviews(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(40, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, batch_first=True)
        self.classify = nn.Dense(24, 2)

    def construct(self, ids, length):
        output, _ = self.lstm(self.words(ids))
        ends = ops.arange(ids.shape[0]) * ids.shape[1] + length - 1
        return self.classify(ops.gather(output.reshape(-1, 24), ends, 0))


model = Reviews()
optimizer = nn.Adam(model.trainable_params(), learning_rate=1e-2)
criterion = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda i, n, t: criterion(model(i, n), t), None, optimizer.parameters)
for epoch in range(3):
    model.set_train()
    for ids, length, label in train.create_tuple_iterator():
        loss, grads = grad_fn(ids, length, label)
        optimizer(grads)
    model.set_train(False)
    right = sum(int((model(i, n).argmax(1) == t).sum()) for i, n, t in valid.create_tuple_iterator())
    print(epoch, float(loss), right / 160)
