"""Content of a few samples for the review sheet: those that the model judges worst, and some of every class to compare with.

Nothing is looked at but batches whose scores are kept anyway, within the same share of the run's time. The content of the
last batch of a loader is held until the next one comes; that of hand-made batches only as long as the script holds it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.recorder import Recorder, to_json
from trueline.recorder.watches import noting

_MOST_SUSPICIOUS = 64
_PER_BATCH = 3
_MOST_CLASSES = 20
_PER_CLASS = 3
# Pictures are thinned out to about this many pixels on a side, everything else is cut.
_SIDE = 64
MOST_VALUES = 16_384
_MOST_TEXT = 2000


class _Candidate:
    """A sample in question: how far below its batch it was judged, summed over its visits, and its row of the table."""

    __slots__ = ("content", "low", "visits")

    def __init__(self, low: float, content: tuple[Any, ...]) -> None:
        self.low = low
        self.visits = 1
        self.content = content

    @property
    def suspicion(self) -> float:
        """A mean that trusts few visits less."""
        return self.low / (self.visits + 1)


class SampleKeeper:
    """Told of batches and of how their samples were judged."""

    def __init__(self, recorder: Recorder, row_of: Callable[[Any, int], NDArray[Any] | None]) -> None:
        """`row_of` gives one sample of a tensor, thinned out; None for a tensor that cannot be read."""
        self.recorder = recorder
        self._row_of = row_of
        self._seq = -1
        self._held: list[Any] | None = None
        self._referred: list[weakref.ref[Any]] = []
        self._source: Any = None
        self._prints = b""
        self._candidates: dict[bytes, _Candidate] = {}
        self._examples: dict[int, dict[bytes, tuple[Any, ...]]] = {}

    @noting
    def batch(self, seq: int, inputs: list[Any], prints: bytes, *, held: bool, source: Any = None) -> None:
        """A batch came: the tensors of its inputs, and what it was as a whole (it may hold texts)."""
        self._seq = seq
        self._prints = prints
        self._held = inputs if held else None
        self._referred = [] if held else [weakref.ref(tensor) for tensor in inputs]
        self._source = source

    @noting
    def scored(self, seq: int, labels: NDArray[Any], margins: NDArray[Any]) -> None:
        """The samples of a training batch were judged."""
        size = len(margins)
        if seq != self._seq or len(self._prints) != 8 * size or not size:
            return
        spread = float(np.median(np.abs(margins))) or 1.0
        lows = margins / spread
        for row in np.argsort(lows)[:_PER_BATCH].tolist():
            if lows[row] < 0:
                self._suspect(row, int(labels[row]), float(lows[row]))
        for row in {self._seq % size, (self._seq * 7 + 3) % size}:
            self._example(row, int(labels[row]))
        # Those that are known already are followed, whatever is thought of them now.
        prints = self._prints
        places = {prints[8 * row : 8 * row + 8]: row for row in range(size)}
        for key in places.keys() & self._candidates.keys():
            candidate = self._candidates[key]
            if candidate.content[0] != seq:
                candidate.low += float(lows[places[key]])
                candidate.visits += 1

    def _suspect(self, row: int, label: int, low: float) -> None:
        key = self._prints[8 * row : 8 * row + 8]
        if key in self._candidates:
            return
        if len(self._candidates) >= _MOST_SUSPICIOUS:
            least = max(self._candidates, key=lambda one: self._candidates[one].suspicion)
            if self._candidates[least].suspicion <= low / 2:
                return
            del self._candidates[least]
        content = self._content(row, label)
        if content is not None:
            self._candidates[key] = _Candidate(low, content)

    def _example(self, row: int, label: int) -> None:
        examples = self._examples.get(label)
        if examples is None:
            if len(self._examples) >= _MOST_CLASSES:
                return
            examples = self._examples[label] = {}
        key = self._prints[8 * row : 8 * row + 8]
        if len(examples) < _PER_CLASS and key not in examples:
            content = self._content(row, label)
            if content is not None:
                examples[key] = content

    def _content(self, row: int, label: int) -> tuple[Any, ...] | None:
        key = self._prints[8 * row : 8 * row + 8].hex()
        texts = _texts_in(self._source, len(self._prints) // 8)
        if texts is not None:
            return (self._seq, row, label, key, "text", "[]", texts[row][:_MOST_TEXT].encode(errors="replace"))
        tensors = self._held if self._held is not None else [reference() for reference in self._referred]
        tensor = tensors[0] if tensors else None
        array = None if tensor is None or row >= tensor.shape[0] else self._row_of(tensor, row)
        if array is None:
            return None
        return (self._seq, row, label, key, str(array.dtype), to_json(list(array.shape)), np.ascontiguousarray(array).tobytes())

    @noting
    def finish(self) -> None:
        """Hand over what was kept."""
        kept = {key: candidate.content for key, candidate in self._candidates.items()}
        for examples in self._examples.values():
            kept |= {key: content for key, content in examples.items() if key not in kept}
        for content in kept.values():
            self.recorder.row("sample", content)


def _texts_in(source: Any, size: int) -> list[str] | None:
    """The list of texts of a batch, when it holds one per sample."""
    parts = source.values() if isinstance(source, dict) else source if isinstance(source, list | tuple) else ()
    for part in parts:
        if isinstance(part, list | tuple) and len(part) == size and all(isinstance(text, str) for text in part):
            return list(part)
    return None


def thinned(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The index that leaves a picture with fewer pixels. Channels come first or last and are few: an axis is thinned out only
    where it is long."""
    return tuple(slice(None, None, -(-length // _SIDE)) for length in shape) if len(shape) >= 2 else ()
