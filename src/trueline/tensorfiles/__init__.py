"""Tensors in files: checkpoints of both frameworks, arrays, and the folders that dump tools leave.

Nothing is loaded before it is asked for, contents are mapped rather than read, and no file's code is ever run.
"""

from trueline.tensorfiles.open import open_tensors
from trueline.tensorfiles.source import TensorEntry, TensorSource
from trueline.tensorfiles.stored import Stored

__all__ = ["Stored", "TensorEntry", "TensorSource", "open_tensors"]
