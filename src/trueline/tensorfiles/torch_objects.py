"""What the names in a pickle of PyTorch stand for: tensors as descriptions of where their values lie."""

from __future__ import annotations

from typing import Any

import msgspec

from trueline import limits
from trueline.tensorfiles.pickled import Global, StandIn, is_plain_key

_STORAGES = {
    "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip
_DTYPES = frozenset(
    "float64 float32 float16 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz complex32 complex64 complex128 "
    "int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool".split()
)


class StorageRef(msgspec.Struct, frozen=True):
    """A run of numbers in the file. `dtype` is None where the tensors on it say how its bytes are meant."""

    key: str
    dtype: str | None
    first: int = 0


class TensorRef(msgspec.Struct, frozen=True):
    """A tensor: a view on a storage. `offset` and `strides` are counted in its elements."""

    storage: StorageRef
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    trainable: bool | None


def storage_of(reference: Any) -> StorageRef:
    """What a persistent id of torch.save means: ('storage', type, key, device, length[, view])."""
    if not isinstance(reference, tuple) or not 5 <= len(reference) <= 6:
        raise TypeError("it refers to something that is no storage")
    tag, kind, key, _, _, *view = reference
    if tag != "storage" or not isinstance(kind, Global) or not isinstance(key, str):
        raise ValueError("it refers to something that is no storage")
    first = view[0][1] if view and view[0] is not None else 0
    if type(first) is not int or first < 0:
        raise ValueError("a storage starts at what is no number")
    return StorageRef(key, _storage_type(kind.name), first)


def stand_in(name: str) -> StandIn | None:
    """The stand-in of a global; None for all that a checkpoint of tensors does not need."""
    if name.startswith("torch.") and (name.removeprefix("torch.") in _DTYPES or name.endswith("Storage")):
        return _named(name)
    return _STAND_INS.get(name)


def _storage_type(name: str) -> str | None:
    kind = name.rpartition(".")[2].removesuffix("Storage")
    if kind in {"Untyped", "Typed"}:
        return None
    if kind not in _STORAGES:
        raise ValueError(f"storages of type {name} are not known")
    return _STORAGES[kind]


def _tensor(storage: StorageRef, offset: int, shape: Any, strides: Any, *more: Any) -> TensorRef:
    if storage.dtype is None:
        raise ValueError("a tensor has no type")
    return _checked(storage, storage.dtype, offset, shape, strides, more[0] if more else False)


def _typed_tensor(
    storage: StorageRef, offset: int, shape: Any, strides: Any, grad: Any, _hooks: Any, dtype: Any, *_: Any
) -> TensorRef:
    return _checked(storage, dtype.name.removeprefix("torch."), offset, shape, strides, grad)


def _checked(storage: Any, dtype: str, offset: Any, shape: Any, strides: Any, grad: Any) -> TensorRef:
    if not isinstance(shape, tuple | list) or not isinstance(strides, tuple | list):
        raise TypeError("a tensor has no shape")
    if max(len(shape), len(strides)) > limits.DIMENSIONS:
        raise ValueError(f"a tensor has more than {limits.DIMENSIONS} dimensions")
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, StorageRef) or not all(type(each) is int and each >= 0 for each in numbers):
        raise ValueError("a tensor is described by other things than numbers")
    # Tensors of a state dict are detached: that they want no gradient says nothing of the parameters.
    return TensorRef(storage, dtype, offset + storage.first, tuple(shape), tuple(strides), True if grad is True else None)


def _parameter(data: Any, requires_grad: Any = True, *_: Any) -> Any:  # noqa: FBT002 - called as the pickle says
    if not isinstance(data, TensorRef):
        raise TypeError("a parameter holds no tensor")
    return msgspec.structs.replace(data, trainable=bool(requires_grad))


def _of_type(rebuild: Any, _kind: Any, arguments: Any, _state: Any) -> Any:
    # Nothing else, as it could be this function, and so on without end.
    if not isinstance(rebuild, Global) or rebuild.stand_in not in _MAKES_A_TENSOR or not isinstance(arguments, tuple):
        raise TypeError("a tensor is made by what is no function")
    return rebuild.stand_in(*arguments)


def _dict(*arguments: Any) -> dict[Any, Any]:
    given = arguments[-1] if arguments else {}
    pairs = given.items() if isinstance(given, dict) else given if isinstance(given, list | tuple) else ()
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 and is_plain_key(pair[0]) for pair in pairs):
        raise TypeError("a dict is made of what are no keys and values")
    return dict(pairs)


def _items(items: Any = ()) -> list[Any]:
    return list(items)


def _text_as_bytes(text: str, *_: Any) -> bytes:
    return text.encode("latin1")


def _opaque(*_arguments: Any, **_keywords: Any) -> dict[Any, Any]:
    """Settings that lie beside the tensors: nobody asks for them."""
    return {}


def _named(name: str) -> StandIn:
    def never_called(*_: Any) -> Any:
        raise TypeError(f"{name} is called")

    return never_called


_MAKES_A_TENSOR = (_tensor, _typed_tensor, _parameter)
_STAND_INS: dict[str, StandIn] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _typed_tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": _of_type,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.nn.parameter.Buffer": _parameter,
    "torch.Tensor": _named("torch.Tensor"),
    "torch.Size": lambda items=(): tuple(items),
    "torch.device": _opaque,
    "torch.serialization._get_layout": _opaque,
    "collections.OrderedDict": _dict,
    "collections.defaultdict": _dict,
    "collections.Counter": _dict,
    "argparse.Namespace": _opaque,
    "_codecs.encode": _text_as_bytes,
    "numpy.dtype": _opaque,
    "numpy.core.multiarray.scalar": _opaque,
    "numpy._core.multiarray.scalar": _opaque,
    "pathlib.PosixPath": _opaque,
    "pathlib._local.PosixPath": _opaque,
    **{f"{module}.{name}": _items for module in ("builtins", "__builtin__") for name in ("set", "frozenset", "list", "tuple")},
    **{f"{module}.{name}": _opaque for module in ("builtins", "__builtin__") for name in ("complex", "bytearray", "slice")},
    **{f"{module}.dict": _dict for module in ("builtins", "__builtin__")},
    **{f"{module}.{name}": _opaque for module in ("builtins", "__builtin__") for name in ("int", "float", "str", "bool")},
}
