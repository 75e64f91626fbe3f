"""What is counted of each field during the pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from trueline.datasets.columns import Column, Numbers, Texts
from trueline.datasets.extremes import Distinct, Ends
from trueline.datasets.hashing import NOTHING
from trueline.datasets.sentinels import find_sentinels
from trueline.datasets.summary import FieldSummary

_CERTAIN_WORDS = ("?", "??", "n/a", "#n/a", "nan", "null", "<na>", "(null)", "\\n", "-", "--", ".", "#value!", "#div/0!")
# Also names of categories: no garage, Namibia.
_DOUBTFUL_WORDS = ("na", "none", "nil", "unknown", "missing", "undefined")
_PLACES_OF_WHITE = np.isin(np.arange(256), np.frombuffer(b" \t\r\n\v\f", np.uint8))
_MOST_WORDS = 50
_FREE_TEXT = 0.5
_BLANK_BELOW = 64
# Blocks of numbers are sampled at so many of their features.
_FEATURES_SAMPLED = 16


class Field:
    """Counts over the chunks of one field, whatever type they come in: JSON may change its mind on the way."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.summary = FieldSummary(name, "number", words={}, doubtful={})
        self.distinct = Distinct()
        self._ends = Ends()
        self._whole = True
        self._is_text = False
        self._kind = "number"
        self._moments = (0, 0.0, 0.0)
        self._length = 0
        self.sample: list[npt.NDArray[Any]] = []
        self.sample_identity: list[npt.NDArray[np.uint64]] = []

    def skip(self, rows: int) -> None:
        """Rows that came before the field was first seen."""
        if rows:
            self.summary.count += rows
            self.summary.null += rows
            self.summary.first_missing = 0

    def add(self, column: Column, first_row: int, chosen: npt.NDArray[np.int64]) -> None:
        """`chosen` are the places of the rows that belong to the sample."""
        missing_before = self._seen_missing()
        identity = column.identity
        present = identity != NOTHING
        if isinstance(column, Texts):
            self._add_texts(column)
        else:
            self._add_numbers(column, chosen)
        self.distinct.add(identity if present.all() else identity[present], _namer(column, present))
        self.sample_identity.append(identity[chosen])
        if self.summary.first_missing is None and self._seen_missing() > missing_before:
            self.summary.first_missing = first_row + _first_missing(column)

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Keep only some rows of the sample."""
        together = np.concatenate(self.sample_identity) if self.sample_identity else np.empty(0, np.uint64)
        self.sample_identity = [together[kept[-len(together) :] if len(together) else kept[:0]]]
        values = np.concatenate(self.sample) if self.sample else np.empty(0)
        per_row = len(values) // max(1, len(together))
        if per_row and len(values) == per_row * len(together):
            self.sample = [values.reshape(len(together), per_row)[kept[-len(together) :]].ravel()]
        else:
            self.sample = [values[::2]]

    def finish(self) -> FieldSummary:
        summary = self.summary
        # An estimate may be off by a few percent, but not beyond the number of values.
        summary.distinct = min(self.distinct.estimate, summary.count)
        self._name_type()
        if summary.distinct == 1 and summary.count > 1 and not summary.missing and summary.type != "image":
            summary.constant = next(iter(self.distinct.counts().values()))[0]
        count, mean, squares = self._moments
        if count:
            lows, highs = self._ends.lows, self._ends.highs
            if lows and highs:
                summary.low, summary.high = lows[0][0], highs[0][0]
            summary.mean, summary.std = mean, math.sqrt(max(0.0, squares / count))
            if not self._is_text and self._kind in ("number", "time", "array", "ragged"):
                sample = np.concatenate(self.sample) if self.sample else np.empty(0)
                finite = sample[np.isfinite(sample)]
                summary.sentinels = find_sentinels(lows, highs, finite, count, self._usual_count(count))
        return summary

    def chance_of_equal(self) -> float:
        """The chance that two rows have the same value here."""
        if self._kind in ("image", "array", "ragged", "bytes"):
            return 0.0
        drawn = np.concatenate(self.sample_identity) if self.sample_identity else np.empty(0, np.uint64)
        pairs = len(drawn) * (len(drawn) - 1) / 2
        if not pairs:
            return 1.0
        _, counts = np.unique(drawn, return_counts=True)
        equal = float((counts * (counts - 1) / 2).sum())
        if not equal and self._is_text and self._length >= 20 * self.summary.count:
            return 0.0
        return max(equal, 1.0) / pairs

    def _usual_count(self, count: int) -> float:
        """How often a value repeats; of arrays, all of whose values count, by their number of distinct ones in the sample."""
        if self._kind in ("number", "time"):
            return self.distinct.usual_count
        drawn = np.concatenate(self.sample) if self.sample else np.empty(0)
        return count / max(1, len(np.unique(drawn)))

    def _seen_missing(self) -> int:
        return self.summary.missing

    def _add_texts(self, texts: Texts) -> None:
        summary = self.summary
        lengths = texts.lengths
        nulls = int(texts.null.sum())
        if not summary.count or self._moments[0] == 0:
            self._is_text = True
        self._kind = texts.kind
        self._length += int(lengths.sum())
        summary.count += len(texts)
        summary.null += nulls
        summary.empty += int((lengths == 0).sum()) - nulls
        if texts.kind in ("bytes", "id", "nested"):
            return
        summary.blank += _count_blank(texts)
        _CERTAIN.count(texts, summary.words)
        _DOUBTFUL.count(texts, summary.doubtful)

    def _add_numbers(self, numbers: Numbers, chosen: npt.NDArray[np.int64]) -> None:
        summary = self.summary
        self._kind = numbers.kind
        values = numbers.values
        summary.count += len(numbers) if numbers.kind == "image" else values.size + numbers.missing_rows
        summary.null += numbers.null + numbers.missing_rows
        summary.empty += numbers.empty
        summary.blank += numbers.blank
        for word, count in numbers.words.items():
            if word in summary.words or len(summary.words) < _MOST_WORDS:
                summary.words[word] = summary.words.get(word, 0) + count
            else:
                summary.words["…"] = summary.words.get("…", 0) + count
        if numbers.kind == "ragged":
            self.sample.append(_some_values(values, len(chosen)))
        elif len(values):
            self.sample.append(_some_features(values[chosen]).astype(np.float64).ravel())
        flat = values.ravel()
        if flat.dtype.kind == "f":
            finite = np.isfinite(flat)
            if not finite.all():
                nans = int(np.isnan(flat).sum())
                summary.nan += nans - numbers.absent
                summary.inf += int(len(flat) - finite.sum()) - nans
                flat = flat[finite]
            if self._whole and len(flat):
                self._whole = bool((flat == np.floor(flat)).all())
        if len(flat):
            self._ends.add(flat.astype(np.float64, copy=False))
            self._add_moments(flat)

    def _add_moments(self, values: npt.NDArray[Any]) -> None:
        count, mean, squares = self._moments
        with np.errstate(over="ignore", invalid="ignore"):
            new = len(values)
            new_mean = float(values.mean(dtype=np.float64))
            new_squares = float(values.var(dtype=np.float64)) * new
            shift = new_mean - mean
            total = count + new
            self._moments = (total, mean + shift * new / total, squares + new_squares + shift * shift * count * new / total)

    def _name_type(self) -> None:
        summary = self.summary
        if self._is_text:
            present = max(1, summary.count - summary.null - summary.empty)
            repeats = summary.distinct <= _FREE_TEXT * present
            summary.free_text = not repeats
            summary.type = {"text": "category" if repeats else "text", "id": "file"}.get(self._kind, self._kind)
        elif self._kind in ("number", "ragged"):
            # A column that turned out to hold no number at all is not one of numbers.
            summary.type = ("integer" if self._whole else "number") if self._moments[0] else "empty"
        else:
            summary.type = self._kind


def _some_features(block: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if block.ndim == 1:
        return block
    return block[:, :: max(1, block.shape[1] // _FEATURES_SAMPLED)]


def _some_values(values: npt.NDArray[Any], rows: int) -> npt.NDArray[np.float64]:
    wanted = max(1, rows * _FEATURES_SAMPLED)
    return values[:: max(1, len(values) // wanted)].astype(np.float64)


def _namer(column: Column, present: npt.NDArray[np.bool_]) -> Any:
    places = None if present.all() else np.flatnonzero(present)

    def name(place: int) -> str:
        at = place if places is None else int(places[place])
        if isinstance(column, Texts):
            return column[at]
        if column.kind not in ("number", "time"):
            return column.kind
        value = column.values[at]
        return str(int(value)) if value == np.floor(value) and abs(value) < 1e15 else f"{value:.6g}"

    return name


def _first_missing(column: Column) -> int:
    if isinstance(column, Texts):
        words = {name.lower().strip() for name in _CERTAIN_WORDS}
        short = np.flatnonzero((column.lengths <= 10) | column.null)
        return next((int(at) for at in short if column.null[at] or column[int(at)].lower().strip() in words | {""}), 0)
    values = column.values
    if column.kind in ("ragged", "image") or values.dtype.kind != "f":
        return 0
    bad = ~np.isfinite(values) if values.ndim == 1 else ~np.isfinite(values).all(axis=1)
    return int(np.argmax(bad))


def _count_blank(texts: Texts) -> int:
    """Texts of nothing but white space."""
    short = np.flatnonzero((texts.lengths > 0) & (texts.lengths < _BLANK_BELOW))
    candidates = short[_PLACES_OF_WHITE[texts.data[texts.offsets[short]]]] if len(short) else short
    last = candidates[_PLACES_OF_WHITE[texts.data[texts.offsets[candidates + 1] - 1]]] if len(candidates) else candidates
    return sum(not texts[int(at)].strip() for at in last)


class _Words:
    """Words in the spellings they come in, found by their identities."""

    def __init__(self, words: tuple[str, ...]) -> None:
        written = [
            f"{before}{form}{after}"
            for word in words
            for form in dict.fromkeys((word, word.upper(), word.capitalize(), {"nan": "NaN", "n/a": "N/a"}.get(word, word)))
            for before in ("", " ")
            for after in ("", " ")
        ]
        hashes = Texts.of(written).identity
        self._names = {int(value): text.strip() for value, text in zip(hashes, written, strict=True)}
        self._longest = max(map(len, written))
        # One look into a small table settles nearly every text that is none of them.
        self._maybe = np.zeros(1 << 16, bool)
        self._maybe[(hashes & np.uint64(0xFFFF)).astype(np.int64)] = True

    def count(self, texts: Texts, counts: dict[str, int]) -> None:
        identity = texts.identity[texts.lengths <= self._longest]
        candidates = identity[self._maybe[(identity & np.uint64(0xFFFF)).astype(np.int64)]]
        for value, count in zip(*np.unique(candidates, return_counts=True), strict=True):
            name = self._names.get(int(value))
            if name is not None:
                counts[name] = counts.get(name, 0) + int(count)


_CERTAIN, _DOUBTFUL = _Words(_CERTAIN_WORDS), _Words(_DOUBTFUL_WORDS)
