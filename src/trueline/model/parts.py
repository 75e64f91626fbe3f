"""The parts of a record that can be complete or not apart from each other, in the words of messages.

A part is a table, or of the tables of tensors and events one role or kind. `before` and `alignment` are no tables: what the
files were before the script changed them, and that an aligned run has what it was to be given.
"""

from __future__ import annotations

PARTS = {
    "module": "layers",
    "parameter": "parameters",
    "snapshot": "the content of parameters",
    "optimizer": "optimizers",
    "optimizer_parameter": "what optimizers hold",
    "hyperparameter": "hyper-parameters",
    "loader": "loaders",
    "batch": "batches",
    "field_stat": "features of batches and inputs",
    "score": "how samples were judged",
    "sample": "samples for review",
    "loss_call": "calls of loss functions",
    "op": "operations",
    "root_call": "calls of the model",
    "step": "steps",
    "stat:batch": "statistics of batches",
    "stat:output": "outputs of layers",
    "stat:output_grad": "gradients of outputs",
    "stat:parameter": "statistics of parameters",
    "stat:gradient": "gradients of parameters",
    "stat:update": "updates of parameters",
    "event:seed": "seeds",
    "event:load": "loads of weights",
    "event:weights_read": "files of weights",
    "event:init_after_load": "initialisations over loads",
    "event:mode": "changes of the mode",
    "event:functional_dropout": "functional dropout",
    "event:zero_grad": "clearing of gradients",
    "event:backward": "backward passes",
    "event:gradient_of_gradient": "gradients of gradients",
    "event:clip": "clipping",
    "event:scale": "loss scaling",
    "event:unscale": "unscaling",
    "event:scaler_step": "steps of the scaler",
    "event:scaler_update": "updates of the scale",
    "event:optimizer_step": "steps of optimizers",
    "event:scheduler_step": "steps of schedules",
    "event:eval_loss": "losses of evaluation",
    "event:collective": "collective operations",
    "event:file_opened": "files that are read",
    "event:file_written": "files that are written",
    "event:connected": "connections",
    "event:printed": "what is printed",
    "before": "what files were before the run",
    "alignment": "being aligned to another run",
}  # fmt: skip
EVERYTHING = tuple(PARTS)
EVENTS = tuple(part for part in PARTS if part.startswith("event:"))


def in_words(parts: tuple[str, ...]) -> str:
    """What is missing, in one line; a part of a later version under its own name."""
    if set(parts) >= set(EVERYTHING) - {"before", "alignment"}:
        return "everything"
    return ", ".join(PARTS.get(part, part) for part in parts)
