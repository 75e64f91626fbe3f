"""Differences planted in the language model."""

from __future__ import annotations

from benchmarks.differences._difference import Difference, Edit, difference

_SUM = "the loss is 384 times the reference's; clipping and Adam hide it from the updates"
_CLIP = "the first gradients are larger; Adam hides it from the first update, so the third loss is the first to tell"

REFACTOR: list[Difference] = [
    difference(
        "gelu_form",
        Edit('approximate="none"', 'approximate="tanh"'),
        "activations off by up to 5e-4, the loss by 2 parts in a million",
        ["layers.1.branch", "layers.1.branch.1"],
    ),
    difference(
        "layer_norm_eps",
        Edit("self.norm = nn.LayerNorm(width, eps=1e-5)", "self.norm = nn.LayerNorm(width, eps=1e-12)"),
        "normalised values larger by about 1 part in 150, for the embedding is small",
        ["layers.0.norm"],
    ),
    difference(
        "missing_bias",
        Edit("self.output = nn.Linear(width, width)", "self.output = nn.Linear(width, width, bias=False)"),
        "outputs off by the bias",
        ["layers.0.branch.output"],
    ),
    difference(
        "other_activation",
        Edit('nn.GELU(approximate="none")', "nn.ReLU()"),
        "negative values cut off",
        ["layers.1.branch", "layers.1.branch.1"],
    ),
    difference(
        "missing_attention_scale",
        Edit("scores = scores * self.scale", ""),
        "scores 2.8 times the reference's",
        ["layers.0.branch"],
        ("torch.einsum(", "attention = torch.softmax(", "self.scale = heads"),
    ),
    difference("dropped_residual", Edit("return x + change", "return change"), "the output lacks the input", ["layers.0"]),
    difference(
        "dropout_rate",
        Edit("dropout=0.1", "dropout=0.3"),
        "three times as many values dropped",
        [f"layers.{number}.dropout" for number in range(4)],
        ("nn.Dropout(",),
    ),
    difference("loss_sum", Edit('reduction="mean"', 'reduction="sum"'), _SUM, [None, "cross_entropy"]),
    difference(
        "label_smoothing",
        Edit("label_smoothing=0.0", "label_smoothing=0.1"),
        "the loss is other, the more so as it falls",
        [None, "cross_entropy"],
    ),
    difference("clip_value", Edit("max_norm=0.25", "max_norm=2.5"), _CLIP),
    difference(
        "clip_missing",
        Edit("nn.utils.clip_grad_norm_(gpt.parameters(), max_norm=0.25)", ""),
        _CLIP,
        also=("loss.backward()", "adam.step()"),
    ),
    difference("optimizer_eps", Edit("eps=1e-8", "eps=1e-4"), "updates smaller where gradients are small"),
    difference("weight_decay_form", Edit("optim.AdamW(", "optim.Adam("), "the decay goes through Adam's division"),
    difference(
        "schedule",
        Edit("[30, 60]", "[40, 60]"),
        "updates from step 30 to 39 are 2.5 times the reference's",
        also=("schedule.step()",),
    ),
    difference(
        "initial_weights",
        Edit("normal_(self.token.weight, std=0.02)", "normal_(self.token.weight)"),
        "the embedding has 50 times the spread",
        ["token"],
        ("self.token = ",),
    ),
    difference(
        "data_order",
        Edit("default_rng(11)", "default_rng(12)"),
        "the batches hold other samples",
        also=("begins = rng.integers",),
    ),
]

PORT: list[Difference] = [
    difference(
        "gelu_form",
        Edit("approximate=False", "approximate=True"),
        "activations off by up to 5e-4, the loss by 2 parts in a million",
        ["blocks.0.act"],
    ),
    difference(
        "layer_norm_eps",
        Edit("self.ln1 = nn.LayerNorm((WIDTH,), epsilon=1e-5)", "self.ln1 = nn.LayerNorm((WIDTH,))"),
        "normalised values larger by about 1 part in 150, for the embedding is small",
        ["blocks.0.ln1"],
    ),
    difference(
        "missing_bias",
        Edit("self.proj = nn.Dense(WIDTH, WIDTH)", "self.proj = nn.Dense(WIDTH, WIDTH, has_bias=False)"),
        "outputs off by the bias",
        ["blocks.0.attn.proj"],
    ),
    difference("other_activation", Edit("nn.GELU(approximate=False)", "nn.ReLU()"), "negative values cut off", ["blocks.0.act"]),
    difference(
        "missing_attention_scale",
        Edit(" / math.sqrt(c // HEADS)", " / 1.0"),
        "scores 2.8 times the reference's",
        ["blocks.0.attn"],
    ),
    difference(
        "dropped_residual",
        Edit("x = x + self.drop(self.attn(self.ln1(x)))", "x = self.drop(self.attn(self.ln1(x)))"),
        "the output lacks the input",
        ["blocks.0"],
    ),
    difference(
        "dropout_rate",
        Edit("nn.Dropout(p=0.1)", "nn.Dropout(p=0.9)"),
        "nearly all values dropped",
        ["blocks.0.drop", "blocks.1.drop"],
    ),
    difference("loss_sum", Edit('reduction="mean"', 'reduction="sum"'), _SUM, [None, "loss_fn"]),
    difference(
        "label_smoothing",
        Edit("label_smoothing=0.0", "label_smoothing=0.1"),
        "the loss is other, the more so as it falls",
        [None, "loss_fn"],
    ),
    difference(
        "clip_value",
        Edit("clip_by_global_norm(grads, 0.25)", "clip_by_global_norm(grads, 2.5)"),
        _CLIP,
    ),
    difference(
        "clip_missing",
        Edit("grads = ops.clip_by_global_norm(grads, 0.25)", ""),
        _CLIP,
        also=("loss, grads = grad_fn(", "    optimizer(grads)"),
    ),
    difference("optimizer_eps", Edit("lr=2e-3, ", "lr=2e-3, eps=1e-4, "), "updates smaller where gradients are small"),
    difference("weight_decay_form", Edit("optim.AdamW(", "optim.Adam("), "the decay goes through Adam's division"),
    difference(
        "schedule",
        Edit("milestones=[30, 60]", "milestones=[40, 60]"),
        "updates from step 30 to 39 are 2.5 times the reference's",
        also=("scheduler.step()",),
    ),
    difference(
        "initial_weights",
        Edit(
            "nn.Embedding(VOCAB, WIDTH, embedding_table=Normal(0.02))", "nn.Embedding(VOCAB, WIDTH, embedding_table=Normal(1.0))"
        ),
        "the embedding has 50 times the spread",
        ["wte"],
    ),
    difference(
        "data_order", Edit("default_rng(11)", "default_rng(12)"), "the batches hold other samples", also=("rows = rng.integers",)
    ),
]
