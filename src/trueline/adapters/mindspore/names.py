"""Framework-neutral names and settings of MindSpore's operators."""

from __future__ import annotations

import re
from typing import Any

from trueline.adapters.shared.trace import index_text

_NAMES = {
    "Dense": "linear", "DenseExt": "linear", "MatMulExt": "matmul", "MatMul": "matmul", "BatchMatMul": "bmm",
    "BatchMatMulExt": "bmm",
    "Conv1DExt": "conv1d", "Conv2D": "conv2d", "Conv2DExt": "conv2d", "Conv3D": "conv3d", "Conv3DExt": "conv3d",
    "Conv2DTranspose": "conv_transpose2d", "Softmax": "softmax", "LogSoftmax": "log_softmax", "LogSoftmaxExt": "log_softmax",
    "Sigmoid": "sigmoid", "ReLU": "relu", "ReLU6": "relu6", "GeLU": "gelu", "GeluExt": "gelu", "Gelu": "gelu", "SiLU": "silu",
    "Elu": "elu", "LeakyReLUExt": "leaky_relu", "Tanh": "tanh", "BatchNorm": "batch_norm", "BatchNormExt": "batch_norm",
    "LayerNorm": "layer_norm", "LayerNormExt": "layer_norm", "GroupNorm": "group_norm", "Dropout": "dropout",
    "DropoutExt": "dropout",
    "StopGradient": "detach", "Reshape": "reshape", "View": "view", "Flatten": "flatten", "FlattenExt": "flatten",
    "Transpose": "permute", "TransposeExt": "transpose", "TransposeView": "permute", "ExpandDims": "unsqueeze",
    "Squeeze": "squeeze", "Concat": "cat", "Stack": "stack", "StackExt": "stack", "Gather": "embedding",
    "EmbeddingDense": "embedding",
    "Embedding": "embedding", "Cast": "to", "Contiguous": "contiguous", "ReduceMean": "mean", "MeanExt": "mean",
    "ReduceSum": "sum", "SumExt": "sum", "ReduceMax": "amax", "ReduceMin": "amin", "Mul": "mul", "Muls": "mul", "Add": "add",
    "AddExt": "add", "AddScalar": "add", "Sub": "sub", "SubExt": "sub", "Div": "div",
    "RealDiv": "div", "Divs": "div", "Subs": "sub", "Adds": "add", "Neg": "neg", "Pow": "pow",
    "PowTensorScalar": "pow", "PowScalarTensor": "pow", "Square": "square", "Sqrt": "sqrt", "Rsqrt": "rsqrt", "Exp": "exp",
    "Log": "log", "Abs": "abs", "Argmax": "argmax", "ArgMaxExt": "argmax", "ArgMaxWithValue": "max", "Round": "round",
    "Floor": "floor", "Sign": "sign", "MaxPool": "max_pool2d", "MaxPoolWithIndices": "max_pool2d", "AvgPool": "avg_pool2d",
    "Select": "where", "StridedSlice": "getitem", "Slice": "narrow", "SliceExt": "narrow", "SelectExtView": "getitem",
    "ClampScalar": "clamp", "ClampTensor": "clamp", "LSTM": "lstm", "GRU": "gru", "BiasAdd": "add",
    "SparseSoftmaxCrossEntropyWithLogits": "cross_entropy", "SoftmaxCrossEntropyWithLogits": "cross_entropy",
    "NLLLoss": "nll_loss", "BinaryCrossEntropy": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "KLDivLoss": "kl_div", "SmoothL1Loss": "smooth_l1_loss", "MSELossExt": "mse_loss", "L1LossExt": "l1_loss",
}  # fmt: skip
# Which scalar arguments stand where after the tensors, by neutral name.
_POSITIONAL = {
    "softmax": ("dim",), "log_softmax": ("dim",), "argmax": ("dim",), "sum": ("dim",), "mean": ("dim",), "cat": ("dim",),
    "dropout": ("p",), "transpose": ("dim0", "dim1"), "leaky_relu": ("negative_slope",),
}  # fmt: skip
# Whose number is the share that is kept.
_KEEPING = {"Dropout", "Dropout2D", "Dropout3D"}
# Which multiply what they add or take away by their last argument.
_WITH_FACTOR = {"AddExt", "SubExt", "InplaceAddExt", "InplaceSubExt"}
_SCALARS = (bool, int, float, str)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def neutral_name(name: str) -> str:
    """`SoftmaxExt` → `softmax`, `InplaceAddExt` → `add`; what is not known, in lower case: `OneHot` → `one_hot`."""
    name = name.removesuffix("View") if name not in _NAMES else name
    known = _NAMES.get(name) or _NAMES.get(name.removeprefix("Inplace")) or _NAMES.get(name.removesuffix("Ext"))
    return known or _CAPITAL.sub("_", name.removesuffix("Ext")).lower()


def settings_of(name: str, args: Any) -> dict[str, Any]:
    # Operators that are objects are handed their own name.
    given = [value for value in args if not (isinstance(value, str) and value == name)]
    scalars = [_plain(value) for value in given if value is None or isinstance(value, _SCALARS) or _is_shape(value)]
    names = _POSITIONAL.get(neutral_name(name), ())
    settings = dict(zip(names, scalars, strict=False))
    if name == "StridedSlice" and len(scalars) == 8:
        settings["index"] = _index_of_slices(
            [value if isinstance(value, list | tuple) else [value] for value in scalars[:3]], scalars
        )
    if name in _WITH_FACTOR and settings.get("args") == [1]:
        del settings["args"]
    if name in _KEEPING and isinstance(settings.get("p"), float | int):
        settings["p"] = round(1.0 - settings["p"], 6)
    if len(scalars) > len(names):
        settings["args"] = scalars[len(names) :]
    if name.startswith("Inplace"):
        settings["inplace"] = True
    return settings


def _index_of_slices(bounds: list[Any], given: list[Any]) -> str:
    """What an operator that cuts out by bounds and bits was written as: `:, -1`."""
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_mask = given[3:]
    parts: list[Any] = []
    for axis, (begin, end, stride) in enumerate(zip(*bounds, strict=False)):
        bit = 1 << axis
        if ellipsis_mask & bit:
            parts.append(...)
        elif new_axis_mask & bit:
            parts.append(None)
        elif shrink_mask & bit:
            parts.append(begin)
        else:
            parts.append(
                slice(None if begin_mask & bit else begin, None if end_mask & bit else end, None if stride == 1 else stride)
            )
    return index_text(tuple(parts), str)


def _plain(value: Any) -> Any:
    return value[0] if isinstance(value, tuple | list) and len(value) == 1 else value


def _is_shape(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) <= 8 and all(isinstance(part, int) for part in value)
