"""Differences planted in the residual network. Its gradients are clipped, so a smaller rate cannot undo the sum of the losses."""

from __future__ import annotations

from benchmarks.differences._difference import Difference, Edit, difference

_DECAY = "the norms' scales shrink by 1e-4 less in the first update"
_REFACTOR_NORMS = ["0.2", "3.skip.1", *(f"{block}.residual.{place}" for block in range(1, 5) for place in (2, 6))]
_PORT_BLOCKS = ["layer1.0", "layer1.1", "layer2.0", "layer2.1"]
_PORT_NORMS = ["bn1", "layer2.0.downsample.1", *(f"{block}.{norm}" for block in _PORT_BLOCKS for norm in ("bn1", "bn2"))]

REFACTOR: list[Difference] = [
    difference("batch_norm_eps", Edit("eps=1e-5", "eps=1e-3"), "normalised values smaller by 1 part in 2000", ["0.2"]),
    difference(
        "batch_norm_momentum",
        Edit("momentum=0.1", "momentum=0.9"),
        "running statistics are those of the last batch",
        _REFACTOR_NORMS,
    ),
    difference(
        "padding_offset",
        Edit("ZeroPad2d((1, 1, 1, 1))", "ZeroPad2d((0, 2, 0, 2))"),
        "feature maps moved by a pixel",
        ["0", "0.0", "0.1"],
        ("layer = nn.Conv2d(",),
    ),
    difference("missing_bias", Edit("bias=True", "bias=False"), "outputs off by the bias", ["7"]),
    difference(
        "other_activation",
        Edit("self.activation = nn.ReLU()", "self.activation = nn.SiLU()"),
        "negative values pass",
        ["1", "1.activation"],
        ("return self.activation(",),
    ),
    difference(
        "dropped_residual",
        Edit("out = out + self.skip(x)", ""),
        "the block's output lacks its input",
        ["1", "1.activation", "1.skip"],
        ("out = self.residual(x)", "return self.activation(out)", "def forward(self, x)"),
    ),
    difference("nesterov", Edit("nesterov=False", "nesterov=True"), "the first update is 1.9 times the reference's"),
    difference("clip_value", Edit("max_norm=0.5", "max_norm=5.0"), "the first gradients are larger"),
    difference(
        "clip_missing",
        Edit("torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.5)", ""),
        "the first gradients are larger",
        also=("loss.backward()", "optimizer.step()"),
    ),
    difference(
        "loss_sum", Edit('reduction="mean"', 'reduction="sum"'), "the loss is 32 times the reference's", [None, "loss_fn"]
    ),
    difference(
        "label_smoothing",
        Edit("label_smoothing=0.1", "label_smoothing=0.0"),
        "the loss is other by some percent",
        [None, "loss_fn"],
    ),
    difference(
        "schedule",
        Edit("StepLR(optimizer, 30", "StepLR(optimizer, 40"),
        "updates from step 30 to 39 are 5 times the reference's",
        also=("schedule.step()",),
    ),
    difference(
        "normalisation",
        Edit("PIXEL_MEAN, PIXEL_STD = 0.5, 0.22", "PIXEL_MEAN, PIXEL_STD = 0.45, 0.3"),
        "inputs of other mean and spread",
        also=("- PIXEL_MEAN)",),
    ),
    difference(
        "initial_weights",
        Edit('kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")', "normal_(layer.weight, std=0.02)"),
        "the convolutions' weights have about a fifth of the spread or less",
        ["0.1", "3.skip.0", *(f"{block}.residual.{place}" for block in range(1, 5) for place in (1, 5))],
        ("layer = nn.Conv2d(",),
    ),
    difference("not_shuffled", Edit("shuffle=True", "shuffle=False"), "the batches are the rows in order"),
    difference(
        "decay_of_norms",
        Edit(
            "torch.optim.SGD(net.parameters(), ",
            'torch.optim.SGD([{"params": [p for p in net.parameters() if p.ndim > 1]},'
            ' {"params": [p for p in net.parameters() if p.ndim == 1], "weight_decay": 0.0}], ',
        ),
        _DECAY,
        [None, "7", *_REFACTOR_NORMS],
    ),
]

PORT: list[Difference] = [
    difference("batch_norm_eps", Edit("eps=1e-5", "eps=1e-3"), "normalised values smaller by 1 part in 2000", ["bn1"]),
    difference(
        "batch_norm_momentum",
        Edit("eps=1e-5, momentum=0.9", "eps=1e-5, momentum=0.1"),
        "running statistics are those of the last batch",
        _PORT_NORMS,
    ),
    difference(
        "padding_offset",
        Edit('pad_mode="pad", padding=1', 'pad_mode="same"'),
        "the first convolution of stride 2 pads on one side",
        ["layer2.0.conv1"],
        ("self.conv1 = conv(in_planes",),
    ),
    difference("missing_bias", Edit("has_bias=True", "has_bias=False"), "outputs off by the bias", ["fc"]),
    difference(
        "other_activation",
        Edit("self.relu = nn.ReLU()", "self.relu = nn.SiLU()"),
        "negative values pass",
        ["layer1.0", "layer1.0.relu"],
        ("self.relu(self.bn1",),
    ),
    difference(
        "dropped_residual",
        Edit("return self.relu(out + identity)", "return self.relu(out)"),
        "the block's output lacks its input",
        ["layer1.0", "layer1.0.relu"],
    ),
    difference("nesterov", Edit("nesterov=False", "nesterov=True"), "the first update is 1.9 times the reference's"),
    difference(
        "clip_value", Edit("clip_by_global_norm(grads, 0.5)", "clip_by_global_norm(grads, 5.0)"), "the first gradients are larger"
    ),
    difference(
        "clip_missing",
        Edit("grads = ops.clip_by_global_norm(grads, 0.5)", ""),
        "the first gradients are larger",
        also=("loss, grads = grad_fn(", "        optimizer(grads)"),
    ),
    difference(
        "loss_sum", Edit('reduction="mean"', 'reduction="sum"'), "the loss is 32 times the reference's", [None, "criterion"]
    ),
    difference(
        "label_smoothing",
        Edit("label_smoothing=0.1", "label_smoothing=0.0"),
        "the loss is other by some percent",
        [None, "criterion"],
    ),
    difference(
        "schedule",
        Edit("step // 30", "step // 40"),
        "updates from step 30 to 39 are 5 times the reference's",
        also=("nn.SGD(",),
    ),
    difference("normalisation", Edit("(pixels - 0.5) / 0.22", "(pixels - 0.45) / 0.3"), "inputs of other mean and spread"),
    difference(
        "initial_weights",
        Edit('init = HeNormal(mode="fan_out", nonlinearity="relu")', 'init = "normal"'),
        "the convolutions' weights have about a tenth of the spread or less",
        ["conv1", "layer2.0.downsample.0", *(f"{block}.{conv}" for block in _PORT_BLOCKS for conv in ("conv1", "conv2"))],
        ("        return nn.Conv2d(", "return nn.Conv2d(in_planes, planes, size", "self.conv1 = conv(3, 12, 3)"),
    ),
    difference("not_shuffled", Edit("seed=1), shuffle=True", "seed=1), shuffle=False"), "the batches are the rows in order"),
    difference(
        "decay_of_norms",
        (
            Edit('[{"params": model.trainable_params(), "weight_decay": 2e-3}]', "model.trainable_params()"),
            Edit("momentum=0.9, nesterov=False", "momentum=0.9, weight_decay=2e-3, nesterov=False"),
        ),
        _DECAY,
        [None, *_PORT_NORMS],
    ),
]
