"""Differences planted in the LSTM classifier."""

from __future__ import annotations

from benchmarks.differences._difference import Difference, Edit, difference

_SUM = "the loss is 32 times the reference's; clipping and Adam hide it from the updates"
_CLIP = "the first gradients are larger; Adam hides it from the first update, so the third loss is the first to tell"

REFACTOR: list[Difference] = [
    difference("layer_norm_eps", Edit("eps=1e-5", "eps=1e-3"), "normalised values smaller by more than a tenth", ["1.0"]),
    difference(
        "missing_bias",
        Edit("nn.Linear(settings.state, 32)", "nn.Linear(settings.state, 32, bias=False)"),
        "outputs off by the bias",
        ["1.2"],
    ),
    difference("other_activation", Edit("nn.Tanh()", "nn.ReLU()"), "negative values cut off", ["1", "1.3"]),
    difference(
        "dropout_rate",
        Edit("dropout: float = 0.2", "dropout: float = 0.5"),
        "half of the values dropped",
        ["1.1"],
        ("nn.Dropout(",),
    ),
    difference("loss_sum", Edit('reduction="mean"', 'reduction="sum"'), _SUM, [None, "criterion"]),
    difference(
        "label_smoothing",
        Edit("label_smoothing=0.0", "label_smoothing=0.1"),
        "the loss is other, the more so as it falls",
        [None, "criterion"],
    ),
    difference(
        "clip_value",
        Edit("max_norm: float = 0.1", "max_norm: float = 1.0"),
        _CLIP,
        also=("clip_grad_norm_(self",),
    ),
    difference(
        "clip_missing",
        Edit("clip_grad_norm_(self.model.parameters(), self.settings.max_norm)", ""),
        _CLIP,
        also=("loss.backward()", "self.optimizer.step()"),
    ),
    difference("optimizer_eps", Edit("eps=1e-8", "eps=1e-4"), "updates smaller where gradients are small"),
    difference("weight_decay_form", Edit("torch.optim.AdamW(", "torch.optim.Adam("), "the decay goes through Adam's division"),
    difference(
        "schedule",
        Edit("StepLR(self.optimizer, 30", "StepLR(self.optimizer, 40"),
        "updates from step 30 to 39 are twice the reference's",
        also=("self.schedule.step()",),
    ),
    difference(
        "initial_weights",
        Edit("uniform_(self.lookup.weight, -0.1, 0.1)", "normal_(self.lookup.weight)"),
        "the embedding has 17 times the spread",
        ["0.lookup"],
        ("self.lookup = ",),
    ),
    difference("not_shuffled", Edit("shuffle=True", "shuffle=False"), "the batches are the rows in order"),
]

PORT: list[Difference] = [
    difference(
        "layer_norm_eps", Edit("epsilon=1e-5", "epsilon=1e-3"), "normalised values smaller by more than a tenth", ["norm"]
    ),
    difference(
        "missing_bias",
        Edit("nn.Dense(HIDDEN, 32)", "nn.Dense(HIDDEN, 32, has_bias=False)"),
        "outputs off by the bias",
        ["hidden"],
    ),
    difference("other_activation", Edit("ops.tanh(", "ops.relu("), "negative values cut off", ["", "model", None]),
    difference("dropout_rate", Edit("nn.Dropout(p=0.2)", "nn.Dropout(p=0.8)"), "most values dropped", ["dropout"]),
    difference("loss_sum", Edit('reduction="mean"', 'reduction="sum"'), _SUM, [None, "loss_function"]),
    difference(
        "label_smoothing",
        Edit("label_smoothing=0.0", "label_smoothing=0.1"),
        "the loss is other, the more so as it falls",
        [None, "loss_function"],
    ),
    difference("clip_value", Edit("clip_by_global_norm(grads, 0.1)", "clip_by_global_norm(grads, 1.0)"), _CLIP),
    difference(
        "clip_missing",
        Edit("grads = ops.clip_by_global_norm(grads, 0.1)", ""),
        _CLIP,
        also=("loss, grads = grad_fn(", "        optimizer(grads)"),
    ),
    difference("optimizer_eps", Edit("lr=4e-3, ", "lr=4e-3, eps=1e-4, "), "updates smaller where gradients are small"),
    difference("weight_decay_form", Edit("optim.AdamW(", "optim.Adam("), "the decay goes through Adam's division"),
    difference(
        "schedule",
        Edit("step_size=30", "step_size=40"),
        "updates from step 30 to 39 are twice the reference's",
        also=("scheduler.step()",),
    ),
    difference(
        "initial_weights",
        Edit("embedding_table=Uniform(0.1)", 'embedding_table="normal"'),
        "the embedding has a sixth of the spread",
        ["embedding"],
    ),
    difference("not_shuffled", Edit("shuffle=True", "shuffle=False"), "the batches are the rows in order"),
]
