# launch: msrun --worker_num=2 --local_worker_num=2
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn, ops
from mindspore.communication import get_rank, init
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
init()
ms.set_seed(3)
x, y = load_breast_cancer(return_X_y=True)
x = StandardScaler().fit_transform(x).astype("float32")
data = ds.NumpySlicesDataset((x, y.astype("float32")[:, None]), ["features", "target"], shuffle=True)  # <- fault
batches = data.batch(32, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(30, 24), nn.Tanh(), nn.Dense(24, 1))
adam = nn.Adam(net.trainable_params(), learning_rate=3e-3)
reducer = nn.DistributedGradReducer(adam.parameters, mean=True)


def forward(features, target):
    return ops.binary_cross_entropy_with_logits(net(features), target, ops.ones_like(target), ops.ones_like(target))


grad_fn = ms.value_and_grad(forward, None, adam.parameters)
net.set_train()
iterator = batches.create_tuple_iterator(num_epochs=3)
for epoch in range(3):
    for features, target in iterator:
        loss, grads = grad_fn(features, target)
        adam(reducer(grads))
    if get_rank() == 0:
        print("epoch", epoch, "loss", float(loss))
