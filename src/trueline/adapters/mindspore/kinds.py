"""Framework-neutral kinds and settings of MindSpore cells, and the walk over their trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mindspore import Parameter, ParameterTuple, nn
from mindspore.experimental.optim import Optimizer as ExperimentalOptimizer
from mindspore.nn.wrap.cell_wrapper import WithLossCell

OPTIMIZERS = (nn.Optimizer, ExperimentalOptimizer)
# By class name: `nn`, `mint.nn` and `nn.extend` have classes of the same names that share no base.
_KINDS = {
    "linear": "Dense Linear BiDense Bilinear",
    "conv": "_Conv Conv1d Conv2d Conv3d Conv1dTranspose Conv2dTranspose Conv3dTranspose ConvTranspose2d",
    "batch_norm": "_BatchNorm BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm",
    "layer_norm": "LayerNorm",
    "norm": "_InstanceNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d GroupNorm LRN RMSNorm",
    "dropout": "Dropout Dropout1d Dropout2d Dropout3d",
    "embedding": "Embedding EmbeddingLookup",
    "recurrent": "_RNNBase RNN LSTM GRU _RNNCellBase RNNCell LSTMCell GRUCell",
    "attention": "MultiheadAttention",
    "softmax": "Softmax Softmax2d",
    "log_softmax": "LogSoftmax",
    "sigmoid": "Sigmoid",
    "loss": "LossBase _Loss MSELoss L1Loss CrossEntropyLoss NLLLoss BCELoss BCEWithLogitsLoss KLDivLoss SmoothL1Loss",
    "flatten": "Flatten Unflatten",
    "identity": "Identity",
    "container": "SequentialCell CellList CellDict Sequential ModuleList ModuleDict",
}
_KIND_OF_NAME = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_ACTIVATIONS = ("mindspore.nn.layer.activation", "mindspore.mint.nn.layer.activation")
_POOLS = ("mindspore.nn.layer.pooling", "mindspore.mint.nn.layer.pooling")
_SCALARS = (bool, int, float, str)
# Attributes of every cell that say nothing of its task.
_OF_EVERY_CELL = set(vars(nn.Cell())) | {"cls_name"}
# Statistics that BatchNorm keeps: parameters by their type, buffers by what they do.
_RUNNING = ("moving_mean", "moving_variance", "running_mean", "running_var", "num_batches_tracked")
# Where MindSpore keeps cells that are parts of a training step, or that its own functions are made of.
_NO_MODELS = (
    "mindspore.nn.wrap", "mindspore.train", "mindspore.nn.optim", "mindspore.nn.learning_rate", "mindspore.ops",
    "mindspore.amp", "mindspore.boost", "mindspore.parallel",
)  # fmt: skip
_NEUTRAL_NAMES = {
    "linear": {"in_channels": "in_features", "out_channels": "out_features"},
    "embedding": {"vocab_size": "num_embeddings", "embedding_size": "embedding_dim"},
    "layer_norm": {"epsilon": "eps"},
    "activation": {"alpha": "negative_slope"},
}


def kind_of(cell: nn.Cell) -> str:
    for base in type(cell).__mro__:
        if base.__module__.startswith("mindspore."):
            kind = _KIND_OF_NAME.get(base.__name__)
            if kind is not None:
                return kind
            if base.__module__ in _ACTIVATIONS:
                return "activation"
            if base.__module__ in _POOLS:
                return "pool"
    return "other"


def settings_of(cell: nn.Cell) -> dict[str, Any]:
    """The scalar settings of a cell (sizes, eps, p …) under the names that checks know."""
    settings = {
        name: value
        for name, value in vars(cell).items()
        if not name.startswith("_") and name not in _OF_EVERY_CELL and _is_setting(value)
    }
    kind = kind_of(cell)
    for name, neutral in _NEUTRAL_NAMES.get(kind, {}).items():
        if name in settings:
            settings.setdefault(neutral, settings[name])
    if kind == "dropout":
        if settings.get("p") is None and "keep_prob" in settings:
            settings["given"] = "keep_prob"
        settings["p"] = dropped_share(cell)
    if kind == "batch_norm" and _is_number(settings.get("momentum")) and not type(cell).__module__.startswith("mindspore.mint"):
        # Such a cell keeps one minus what it was given, the weight of the new batch as in PyTorch.
        settings["given_momentum"] = round(1.0 - settings["momentum"], 12)
        settings["momentum"] = round(settings["momentum"], 12)
    if kind == "loss" and "reduction" in settings:
        settings["reduction"] = str(settings["reduction"])
    return settings


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_setting(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(value) <= 8 and all(isinstance(part, _SCALARS) for part in value)
    return value is None or isinstance(value, _SCALARS)


def dropped_share(cell: nn.Cell) -> float:
    """The share that a dropout cell drops: `keep_prob` says the opposite of `p`."""
    share: Any = getattr(cell, "p", None)
    if not _is_number(share):
        keep = getattr(cell, "keep_prob", 1.0)
        share = 1.0 - keep if _is_number(keep) else 0.0
    return float(share)


def drops_units(cell: nn.Cell) -> bool:
    """Whether a cell drops values at random in training mode."""
    kind = kind_of(cell)
    if kind == "dropout":
        return dropped_share(cell) > 0
    share = getattr(cell, "dropout", 0.0)
    return kind in {"recurrent", "attention"} and _is_number(share) and share > 0


def drop_nothing(cell: nn.Cell) -> None:
    """Switch off what a cell drops at random."""
    if not drops_units(cell):
        return
    if kind_of(cell) == "dropout":
        cell.p = 0.0
        cell.keep_prob = 1.0
    else:
        cell.dropout = 0.0


def uses_batch_statistics(cell: nn.Cell) -> bool:
    """Whether a cell normalises with the batch's own statistics in training mode only."""
    return kind_of(cell) == "batch_norm" and getattr(cell, "use_batch_statistics", None) is None


def is_uninitialised(parameter: Parameter) -> bool:
    return bool(getattr(parameter, "has_init", False))


def is_wrapper(cell: nn.Cell) -> bool:
    """Whether a cell only puts a training step around a model: what it calls is looked at, not the cell itself."""
    if isinstance(cell, (*OPTIMIZERS, WithLossCell)) or kind_of(cell) == "identity":
        return True
    if type(cell).__module__.startswith(_NO_MODELS):
        return True
    return any(isinstance(part, OPTIMIZERS) for part in cell._cells.values())


def is_model(value: Any) -> bool:
    """Whether a variable may hold a model."""
    return isinstance(value, nn.Cell) and not is_wrapper(value)


def parts_of(cell: nn.Cell) -> list[nn.Cell]:
    """A cell and all cells inside of it, each once."""
    return list({id(part): part for _, part in modules_of(cell)}.values())


def modules_of(root: nn.Cell, path: str = "") -> Iterator[tuple[str, nn.Cell]]:
    """All places of a tree with the cells that stand there."""
    yield path, root
    for name, cell in root._cells.items():
        if cell is not None:
            yield from modules_of(cell, f"{path}.{name}" if path else name)


def tensors_of(root: nn.Cell) -> list[tuple[str, Parameter, bool]]:
    """The parameters at all places of a tree; the last part tells whether it is a buffer. Where a cell holds a tuple of
    parameters, as that of a training step does, those that have a place of their own in the tree are left out."""
    found: list[tuple[str, Parameter, bool]] = []
    listed: list[tuple[str, Parameter, bool]] = []
    for path, cell in modules_of(root):
        prefix = f"{path}." if path else ""
        in_tuples = {id(each) for value in vars(cell).values() if isinstance(value, ParameterTuple) for each in value}
        for name, parameter in cell._params.items():
            if parameter is not None:
                # In a tuple they have their full names, as of other cells.
                rows = listed if id(parameter) in in_tuples else found
                rows.append((prefix + name.replace(".", "_"), parameter, name in _RUNNING))
        for name, buffer in getattr(cell, "_buffers", {}).items():
            if buffer is not None:
                found.append((prefix + name, buffer, True))
    placed = {id(parameter) for _, parameter, _ in found}
    return found + [row for row in listed if id(row[1]) not in placed]


def size_of(root: nn.Cell) -> int:
    """The bytes of its parameters."""
    return sum(int(tensor.nbytes) for _, tensor, buffer in tensors_of(root) if not buffer and not is_uninitialised(tensor))
