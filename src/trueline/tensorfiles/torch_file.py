"""Files of `torch.save`: the zip format, and the one before PyTorch 1.6, in which pickles and bytes follow each other."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from trueline import limits
from trueline.errors import TruelineError, Unreadable
from trueline.reading import open_regular
from trueline.tensorfiles.number_formats import number_format
from trueline.tensorfiles.pickled import read_pickle
from trueline.tensorfiles.source import TensorSource, entry_of
from trueline.tensorfiles.stored import Region, Stored
from trueline.tensorfiles.torch_objects import StorageRef, TensorRef, stand_in, storage_of
from trueline.tensorfiles.tree import model_of, tensors_of
from trueline.tensorfiles.zip_members import data_offset, open_member, open_zip, unpacked

OLD_START = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"


class _Bytes(msgspec.Struct, frozen=True):
    """Where the bytes of a storage lie; `packed` is the member of the zip if it is compressed there."""

    offset: int
    length: int
    packed: zipfile.ZipInfo | None = None


def open_torch(path: Path) -> TensorSource:
    with open_regular(path) as file:
        if zipfile.is_zipfile(file):
            return _open_zip(path)
        file.seek(0)
        if file.read(len(OLD_START)) != OLD_START:
            raise TruelineError(
                f"{path} is no file of torch.save, or it is cut off: it is neither a zip archive nor of the format before that. "
                "Copy or save it again."
            )
    return _open_old(path)


def _open_zip(path: Path) -> TensorSource:
    with open_zip(path) as archive:
        members = {member.filename: member for member in archive.infolist()}
        pickles = [name for name in members if name.endswith("/data.pkl") or name == "data.pkl"]
        if len(pickles) != 1:
            raise TruelineError(
                f"{path} is a zip archive without data.pkl, so torch.save did not write it. Expected a checkpoint."
            )
        root = pickles[0].removesuffix("data.pkl")
        if f"{root}constants.pkl" in members:
            raise TruelineError(f"{path} is a TorchScript model. Save its weights with torch.save(model.state_dict(), path).")
        order = members.get(f"{root}byteorder")
        big = order is not None and _start_of(archive, order) == b"big"
        with open_member(archive, members[pickles[0]]) as file:
            content = read_pickle(file, str(path), stand_in, storage_of)

    def place(storage: StorageRef) -> _Bytes:
        member = members.get(f"{root}data/{storage.key}")
        if member is None:
            raise TruelineError(f"the values {root}data/{storage.key} are missing in the archive")
        if member.compress_type != zipfile.ZIP_STORED:
            return _Bytes(0, member.file_size, member)
        return _Bytes(data_offset(path, member), member.file_size)

    return _source(path, content, place, big_endian=big)


def _start_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with open_member(archive, member) as file:
        return file.read(16)


def _open_old(path: Path) -> TensorSource:
    with open_regular(path) as file:
        for _ in range(3):
            # A magic number, a version, and the sizes of the machine's integers.
            read_pickle(file, str(path), stand_in)
        storages: dict[str, StorageRef] = {}

        def note(reference: Any) -> StorageRef:
            storage = storage_of(reference)
            storages[storage.key] = storage
            return storage

        content = read_pickle(file, str(path), stand_in, note)
        keys = read_pickle(file, str(path), stand_in)
        places = _old_places(path, file, keys, storages)

    def place(storage: StorageRef) -> _Bytes:
        if storage.key not in places:
            raise TruelineError("the file ends before its values")
        return places[storage.key]

    return _source(path, content, place)


def _old_places(path: Path, file: IO[bytes], keys: Any, storages: dict[str, StorageRef]) -> dict[str, _Bytes]:
    """Each storage is its number of elements and then its bytes, in the order of the keys; what is cut off is left out."""
    size = path.stat().st_size
    places: dict[str, _Bytes] = {}
    offset = file.tell()
    for key in keys if isinstance(keys, list) else []:
        if not isinstance(key, str):
            raise TypeError("a storage has no name")
        dtype = storages[key].dtype if key in storages else None
        file.seek(offset)
        length = int.from_bytes(file.read(8), "little") * (number_format(dtype).size if dtype else 1)
        if offset + 8 + length > size:
            break
        places[key] = _Bytes(offset + 8, length)
        offset += 8 + length
    return places


def _source(path: Path, content: Any, place: Callable[[StorageRef], _Bytes], *, big_endian: bool = False) -> TensorSource:
    source = TensorSource(path, "PyTorch checkpoint", "pytorch")
    if isinstance(content, TensorRef):
        source.kind = "PyTorch tensor"
        content = {path.stem: content}
    source.model = model_of(content)
    for name, tensor in tensors_of(content, str(path)):
        try:
            entry = entry_of(name, tensor.shape, tensor.dtype, tensor.trainable)
            held = place(tensor.storage)
            span = _span(tensor)
            if (tensor.offset + span) * number_format(tensor.dtype).size > held.length:
                raise TruelineError("its values reach past the end of their storage")  # noqa: TRY301 - told with the name below
        except TruelineError as problem:
            source.problem(f"{path}: {name} cannot be read: {problem}")
            continue
        source.add(entry, partial(_stored, path, tensor, held, span, big_endian=big_endian))
    return source


def _span(tensor: TensorRef) -> int:
    """How many elements of the storage lie between the first and the last value."""
    if len(tensor.shape) != len(tensor.strides):
        raise TruelineError(f"it has shape {list(tensor.shape)} and strides {list(tensor.strides)}")
    if 0 in tensor.shape:
        return 0
    span = 1 + sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.strides, strict=True))
    if math.prod(tensor.shape) > max(span, limits.EXPANDED_VALUES):
        raise Unreadable(f"its shape {list(tensor.shape)} repeats {span:,} values more often than is read")
    return span


def _stored(path: Path, tensor: TensorRef, held: _Bytes, span: int, *, big_endian: bool) -> Stored:
    found = number_format(tensor.dtype)
    first = tensor.offset * found.size
    in_order = span == math.prod(tensor.shape) and _row_major(tensor)
    if held.packed is None and in_order and not big_endian:
        return Stored(tensor.shape, found, [Region(path, held.offset + first, span * found.size)])
    if held.packed is None:
        flat = Region(path, held.offset + first, span * found.size).array(found.raw)
    else:
        with open_zip(path) as archive:
            flat = np.frombuffer(unpacked(archive, held.packed), found.raw, span, first)
    if big_endian:
        flat = flat.byteswap()
    strides = [stride * found.size for stride in tensor.strides]
    return Stored(tensor.shape, found, array=np.lib.stride_tricks.as_strided(flat, tensor.shape, strides, writeable=False))


def _row_major(tensor: TensorRef) -> bool:
    expected = 1
    for length, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True
