"""Differences planted in the convolutional network on digits."""

from __future__ import annotations

from benchmarks.differences._difference import Difference, Edit, difference

_DECAY = "the norms' scales shrink by 2e-5 less in the first update"

REFACTOR: list[Difference] = [
    difference(
        "batch_norm_eps", Edit("eps=1e-5", "eps=1e-3"), "normalised values smaller by up to 1 part in 2000", ["trunk.0.norm"]
    ),
    difference(
        "batch_norm_momentum",
        Edit("momentum=0.1", "momentum=0.9"),
        "running statistics are those of the last batch",
        ["trunk.0.norm", "trunk.1.norm"],
    ),
    difference(
        "padding_offset",
        Edit("(1, 1, 1, 1)", "(0, 2, 0, 2)"),
        "feature maps moved by a pixel",
        ["trunk.0", "trunk.0.filters"],
        ("self.filters(x)",),
    ),
    difference(
        "missing_bias",
        Edit("nn.Linear(512, hidden)", "nn.Linear(512, hidden, bias=False)"),
        "outputs off by the bias",
        ["head.1"],
    ),
    difference(
        "other_activation",
        Edit("self.act = nn.ReLU()", "self.act = nn.SiLU()"),
        "negative values pass",
        ["trunk.0.act", "trunk.0"],
        ("self.act(",),
    ),
    difference("nesterov", Edit("nesterov=True", "nesterov=False"), "the first update is 1/1.9 of the reference's"),
    difference(
        "loss_sum", Edit('reduction="mean"', 'reduction="sum"'), "the loss is 64 times the reference's", [None, "criterion"]
    ),
    difference(
        "loss_sum_compensated",
        (Edit('reduction="mean"', 'reduction="sum"'), Edit("lr=0.02", "lr=0.02 / 64")),
        "the loss is 64 times the reference's",
        [None, "criterion"],
    ),
    difference(
        "label_smoothing",
        Edit("label_smoothing=0.0", "label_smoothing=0.1"),
        "the loss is other by some percent",
        [None, "criterion"],
    ),
    difference(
        "schedule",
        Edit("[30, 60]", "[40, 60]"),
        "updates from step 30 to 39 are 3.3 times the reference's",
        also=("decay.step()",),
    ),
    difference(
        "normalisation",
        Edit("MEAN, STD = 0.305, 0.376", "MEAN, STD = 0.5, 0.5"),
        "inputs of other mean and spread",
        also=("(pixels - MEAN)",),
    ),
    difference(
        "initial_weights",
        Edit('kaiming_normal_(self.filters.weight, nonlinearity="relu")', "normal_(self.filters.weight, std=0.02)"),
        "the convolutions' weights have a sixth of the spread or less",
        ["trunk.0.filters", "trunk.1.filters"],
        ("self.filters = ",),
    ),
    difference(
        "data_order", Edit("default_rng(1)", "default_rng(2)"), "the batches hold other samples", also=("rng.permutation",)
    ),
    difference(
        "not_shuffled", Edit("order = rng.permutation(len(x))", "order = np.arange(len(x))"), "the batches are the rows in order"
    ),
    difference(
        "decay_of_norms",
        Edit(
            "optim.SGD(model.parameters(), ",
            'optim.SGD([{"params": [p for p in model.parameters() if p.ndim > 1]},'
            ' {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0}], ',
        ),
        _DECAY,
        [None, "trunk.0.norm", "trunk.1.norm", "head.1", "head.3"],
    ),
]

PORT: list[Difference] = [
    difference(
        "batch_norm_eps",
        Edit("BatchNorm2d(16, eps=1e-5", "BatchNorm2d(16, eps=1e-3"),
        "normalised values smaller by up to 1 part in 2000",
        ["bn1"],
    ),
    difference(
        "batch_norm_momentum",
        Edit("BatchNorm2d(16, eps=1e-5, momentum=0.9", "BatchNorm2d(16, eps=1e-5, momentum=0.1"),
        "running statistics are those of the last batch",
        ["bn1"],
    ),
    difference(
        "padding_offset",
        (Edit('pad_mode="pad"', 'pad_mode="same"'), Edit("padding=1,", "padding=0,")),
        "the second convolution, of stride 2, pads on one side",
        ["conv2"],
        ("return nn.Conv2d(", "self.conv2 = "),
    ),
    difference(
        "missing_bias",
        Edit("nn.Dense(32 * 4 * 4, 64)", "nn.Dense(32 * 4 * 4, 64, has_bias=False)"),
        "outputs off by the bias",
        ["fc1"],
    ),
    difference(
        "other_activation",
        Edit("self.relu = nn.ReLU()", "self.relu = nn.SiLU()"),
        "negative values pass",
        ["relu", "", "net"],
        ("self.bn1(self.conv1(x))",),
    ),
    difference("nesterov", Edit("nesterov=True", "nesterov=False"), "the first update is 1/1.9 of the reference's"),
    difference(
        "loss_sum", Edit('reduction="mean"', 'reduction="sum"'), "the loss is 64 times the reference's", [None, "loss_fn"]
    ),
    difference(
        "loss_sum_compensated",
        (Edit('reduction="mean"', 'reduction="sum"'), Edit("[0.02, 0.006, 0.0018]", "[0.02 / 64, 0.006 / 64, 0.0018 / 64]")),
        "the loss is 64 times the reference's",
        [None, "loss_fn"],
    ),
    difference(
        "label_smoothing",
        Edit("label_smoothing=0.0", "label_smoothing=0.1"),
        "the loss is other by some percent",
        [None, "loss_fn"],
    ),
    difference(
        "schedule",
        Edit("[30, 60,", "[40, 60,"),
        "updates from step 30 to 39 are 3.3 times the reference's",
        also=("nn.SGD(",),
    ),
    difference("normalisation", Edit("/ 16.0 - 0.305) / 0.376", "/ 16.0 - 0.5) / 0.5"), "inputs of other mean and spread"),
    difference(
        "initial_weights",
        Edit("weight_init=HeNormal()", 'weight_init="normal"'),
        "the convolutions' weights have about a tenth of the spread or less",
        ["conv1", "conv2"],
        ("return nn.Conv2d(", "self.conv1 = "),
    ),
    difference(
        "data_order", Edit("default_rng(1)", "default_rng(2)"), "the batches hold other samples", also=("rng.permutation",)
    ),
    difference("not_shuffled", Edit("rng.permutation(1536)", "np.arange(1536)"), "the batches are the rows in order"),
    difference(
        "decay_of_norms",
        Edit('[{"params": net.trainable_params()}]', "net.trainable_params()"),
        _DECAY,
        [None, "bn1", "bn2"],
        ("nn.SGD(",),
    ),
]
