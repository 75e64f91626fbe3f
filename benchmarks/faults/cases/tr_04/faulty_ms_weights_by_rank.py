# launch: msrun --worker_num=2 --local_worker_num=2
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
init()
rank, size = get_rank(), get_group_size()
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True, parameter_broadcast=True)
ms.set_seed(1)
x, y = load_digits(return_X_y=True)
x = (x / 16).astype("float32")
train = ds.NumpySlicesDataset((x, y.astype("int32")), ["x", "y"], shuffle=True, num_shards=size, shard_id=rank).batch(32)
ms.set_seed(10 + rank)  # <- fault
net = nn.SequentialCell(nn.Dense(64, 32), nn.ReLU(), nn.Dense(32, 10))
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9)
model = ms.Model(net, nn.CrossEntropyLoss(), optimizer)
model.train(2, train, callbacks=[ms.LossMonitor(28)], dataset_sink_mode=False)
