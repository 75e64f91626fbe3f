# launch: msrun --worker_num=2 --local_worker_num=2
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn, ops
from mindspore.communication import get_group_size, get_rank, init
from sklearn.datasets import load_diabetes

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
init()
rank, size = get_rank(), get_group_size()
ms.set_seed(1)
x, y = load_diabetes(return_X_y=True)
x, y = (x / x.std(0)).astype("float32"), ((y - y.mean()) / y.std()).astype("float32")[:, None]
sampler = ds.DistributedSampler(size, rank, shuffle=True)
train = ds.NumpySlicesDataset((x[:440], y[:440]), ["x", "y"], sampler=sampler).batch(22)
ms.set_seed(5 + rank)
net = nn.SequentialCell(nn.Dense(10, 24), nn.ReLU(), nn.Dense(24, 1))
broadcast = ops.Broadcast(0)
for parameter in net.get_parameters():
    parameter.set_data(broadcast((parameter,))[0])
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.02, momentum=0.9)
all_reduce = ops.AllReduce()


def forward(x, y):
    return ops.mse_loss(net(x), y)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
net.set_train()
iterator = train.create_tuple_iterator(num_epochs=8)
for epoch in range(8):
    for x, y in iterator:
        loss, grads = grad_fn(x, y)
        optimizer(tuple(all_reduce(grad / size) for grad in grads))
    if rank == 0:
        print(epoch, float(loss))
