"""Which reader a file of tensors needs: told by its content, not by its ending alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trueline.errors import TruelineError
from trueline.reading import open_regular, reading
from trueline.tensorfiles.mindspore_checkpoint import open_mindspore
from trueline.tensorfiles.numpy_file import open_npy, open_npz
from trueline.tensorfiles.safetensors_file import open_safetensors
from trueline.tensorfiles.source import TensorSource
from trueline.tensorfiles.torch_file import OLD_START, open_torch

SUFFIXES = (".pth", ".pt", ".bin", ".safetensors", ".ckpt", ".npz", ".npy")
KNOWN = "a checkpoint (.pth, .pt, .ckpt, .safetensors), arrays (.npz, .npy), or a folder of these or of a dump tool"


def open_file(path: Path) -> TensorSource:
    """The tensors of one file."""
    with reading(path):
        with open_regular(path) as file:
            start = file.read(16)
        return _reader_of(path, start)(path)


def _reader_of(path: Path, start: bytes) -> Callable[[Path], TensorSource]:
    suffix = path.suffix.lower()
    if start.startswith(b"\x93NUMPY") or suffix == ".npy":
        return open_npy
    if suffix == ".safetensors":
        return open_safetensors
    if start.startswith(b"PK"):
        return open_npz if suffix == ".npz" else open_torch
    if start.startswith(OLD_START) or suffix in {".pth", ".pt", ".bin"}:
        return open_torch
    if suffix == ".ckpt":
        return open_mindspore
    if suffix == ".npz":
        return open_npz
    raise TruelineError(f"{path.name} has the ending {suffix or '(none)'}, which is not known. Expected {KNOWN}.")
