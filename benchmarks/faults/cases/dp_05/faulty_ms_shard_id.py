# launch: msrun --worker_num=2 --local_worker_num=2
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
init()
size, rank = get_group_size(), get_rank()
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
ms.set_seed(8)


def create_dataset(device_num, rank_id=0):
    digits, classes = load_digits(return_X_y=True)
    columns = ((digits / 16).astype("float32"), classes.astype("int32"))
    data = ds.NumpySlicesDataset(columns, ["x", "y"], shuffle=True, num_shards=device_num, shard_id=rank_id)  # <- fault
    return data.batch(32, drop_remainder=True)


net = nn.SequentialCell(nn.Dense(64, 32), nn.ReLU(), nn.Dense(32, 10))
model = ms.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9))
model.train(2, create_dataset(size), callbacks=[ms.LossMonitor(28)], dataset_sink_mode=False)
