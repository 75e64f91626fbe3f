"""MindSpore keeps the contract of adapters."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import mindspore.dataset as ds
from mindspore import Tensor, nn, ops

from trueline.testing import AdapterContract, Plan
from trueline.testing.contract import BATCH, RATE


class Net(nn.Cell):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        content = {name: Tensor(values) for name, values in plan.weights().items()}
        self.first = nn.Dense(4, 6, weight_init=content["first.weight"], bias_init=content["first.bias"])
        self.second = nn.Dense(6, 3, weight_init=content["second.weight"], bias_init=content["second.bias"])
        self.softmax = plan.softmax

    def construct(self, x: Tensor) -> Tensor:
        scores = self.second(ops.relu(self.first(x)))
        return ops.softmax(scores, axis=1) if self.softmax else scores


class MindSporeTraining:
    framework = "mindspore"

    def __call__(self, plan: Plan) -> list[float]:
        if plan.seed is not None:
            ms.set_seed(plan.seed)
        x, y = plan.data()
        loader = ds.NumpySlicesDataset((x, y), ["inputs", "labels"], shuffle=False).batch(BATCH)
        model = Net(plan)
        for parameter in model.first.get_parameters():
            parameter.requires_grad = not plan.freeze_first
        model.set_train()
        optimizer = nn.SGD(model.trainable_params(), learning_rate=RATE)

        def forward(inputs: Tensor, labels: Tensor) -> Any:
            return ops.cross_entropy(model(inputs), labels)

        gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
        losses = []
        for inputs, labels in loader.create_tuple_iterator(num_epochs=1):
            loss, gradients = gradients_of(inputs, labels)
            if plan.clip is not None:
                gradients = ops.clip_by_global_norm(gradients, plan.clip)
            optimizer(gradients)
            losses.append(float(loss))
        if plan.evaluate:
            model.set_train(False)
            model(Tensor(x[:BATCH]))
        return losses


class TestContract(AdapterContract):
    training = MindSporeTraining()
