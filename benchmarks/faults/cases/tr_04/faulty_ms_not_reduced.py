# launch: msrun --worker_num=2 --local_worker_num=2
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn, ops
from mindspore.communication import get_group_size, get_rank, init
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
init()
rank, size = get_rank(), get_group_size()
ms.set_seed(1)
x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x).astype("float32")
train = ds.NumpySlicesDataset((x, y.astype("int32")), ["x", "y"], shuffle=True, num_shards=size, shard_id=rank).batch(8)

net = nn.SequentialCell(nn.Dense(13, 32), nn.ReLU(), nn.Dense(32, 3))
optimizer = nn.Adam(net.trainable_params(), learning_rate=5e-3)
all_reduce = ops.AllReduce()


def forward(x, y):
    return ops.cross_entropy(net(x), y)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
net.set_train()
iterator = train.create_tuple_iterator(num_epochs=6)
for epoch in range(6):
    total = ms.Tensor([0.0])
    for x, y in iterator:
        loss, grads = grad_fn(x, y)
        optimizer(grads)  # <- fault
        total = total + loss
    total = all_reduce(total)
    if rank == 0:
        print(epoch, float(total) / (size * train.get_dataset_size()))
