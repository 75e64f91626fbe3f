# launch: msrun --worker_num=2 --local_worker_num=2
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
init()
ms.set_seed(4)
digits, classes = load_digits(return_X_y=True)
columns = ((digits / 16).astype("float32"), classes.astype("int32"))
source = ds.NumpySlicesDataset(columns, ["x", "y"], shuffle=True, num_shards=get_group_size(), shard_id=get_rank())
net = nn.SequentialCell(nn.Dense(64, 24), nn.Tanh(), nn.Dense(24, 10))
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.05, momentum=0.9)
model = ms.Model(net, nn.CrossEntropyLoss(), optimizer)
model.train(2, source.batch(32, drop_remainder=True), callbacks=[ms.LossMonitor(28)], dataset_sink_mode=False)  # <- fault
