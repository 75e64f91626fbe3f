"""Inputs of a model that are padded sequences, and whether the model knows which of their steps are padding."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from trueline.model import FieldStat, Op, RootCall
from trueline.store import Run
from trueline.views.dataflow import Trace, plain
from trueline.views.first_layers import FirstLayers
from trueline.views.inputs import ModelInputs

CHANCE = 1e-6
# Less padding than this share of all steps does little harm.
SMALLEST_SHARE = 0.1
# Operations by which padding is usually told from content, when they take the sequences themselves.
_ASKS = frozenset("eq ne gt lt ge le isnan count_nonzero nonzero sign bool where masked_fill abs sum any all max argmax".split())
_RESHAPES = frozenset("view reshape flatten squeeze unsqueeze to long float int contiguous detach".split())
_TAKES_LENGTHS = frozenset("pack_padded_sequence nested_tensor_from_mask".split())


class Padded(msgspec.Struct, frozen=True):
    """One input of a model that is padded in training. `lengths` are the shortest and longest content; `p` is the chance that
    the padding value never occurs in the steps that all sequences have, if it were content."""

    call: RootCall
    module: int
    field: str
    stat: FieldStat
    value: float
    side: str
    share: float
    rows: float
    lengths: tuple[int, int]
    p: float

    @property
    def steps(self) -> int:
        return self.stat.shape[1]

    @property
    def samples(self) -> int:
        return self.stat.shape[0]


def padded_inputs(inputs: ModelInputs) -> list[Padded]:
    """The inputs of training calls of which we can be sure that they are padded, as seen in the traced steps first."""
    found = []
    for (module, field), seen in inputs.fields(inputs.training).items():
        pairs = [(call, stat) for call, stat in seen if stat.padding is not None]
        if not pairs or len(pairs) < 0.5 * len(seen):
            continue
        kinds = {(stat.padding["value"], stat.padding["side"]) for _, stat in pairs if stat.padding}
        share = float(np.mean([stat.padding["share"] for _, stat in pairs if stat.padding]))
        rows = sum(stat.padding["rows"] for _, stat in pairs if stat.padding) / sum(stat.shape[0] for _, stat in pairs)
        if len(kinds) != 1 or share < SMALLEST_SHARE:
            continue
        value, side = kinds.pop()
        call, stat = pairs[0]
        chance = _chance_of_content([stat for _, stat in pairs], value, side, rows)
        lengths = [stat.padding["lengths"] for _, stat in pairs if stat.padding]
        ends = (min(low for low, _ in lengths), max(high for _, high in lengths))
        # Blanks of the same length in every sequence are part of the task, such as copying from memory.
        if side in ("left", "right") and chance < CHANCE and ends[0] < ends[1]:
            found.append(Padded(call, module, field, stat, value, side, share, rows, ends, chance))
    return found


def _chance_of_content(stats: list[FieldStat], value: float, side: str, rows: float) -> float:
    """If the value were content, it would turn up among the steps that no sequence has padding at as often as at the end.

    Whole numbers: the features are the steps, and a column that is always above (below) the value has none of it. Numbers
    with several features: a step whose features are all the same value does not happen by chance.
    """
    if "float" in stats[0].dtype:
        return 0.0 if stats[0].shape[2] > 1 else 1.0
    free = 0
    for stat in stats:
        shortest = stat.padding["lengths"][0] if stat.padding else 0
        columns = range(shortest) if side == "right" else range(len(stat.low) - shortest, len(stat.low))
        for column in columns:
            if stat.low[column] <= value <= stat.high[column]:
                return 1.0
            free += stat.count
    return math.exp(max(-700.0, free * math.log1p(-min(rows, 0.99))))


class Knowledge:
    """What the traced steps of a run show of masks and lengths."""

    def __init__(self, run: Run, trace: Trace) -> None:
        self.run = run
        self.trace = trace
        self.layers = FirstLayers(run, trace)

    def is_used(self, padded: Padded) -> bool:
        """Whether the model asks its input where padding is, or takes lengths or a mask of the same size."""
        for op in self.trace.ops.values():
            name = plain(op.name)
            if name in _TAKES_LENGTHS or op.settings.get("key_padding_mask") or op.settings.get("attn_mask"):
                return True
            for shape, dtype in op.settings.get("fed", ()):
                if self._is_the_input(padded, shape, dtype):
                    if name in _ASKS and self._inside_or_before(op):
                        return True
                elif self._could_tell(padded, shape, dtype) and self._in_model(padded, op) and not self._is_for_loss(op):
                    return True
        return False

    @staticmethod
    def _is_the_input(padded: Padded, shape: list[int], dtype: str) -> bool:
        same = len(shape) == len(padded.stat.shape) and dtype == padded.stat.dtype
        return same and (len(shape) < 3 or shape[2] == padded.stat.shape[2])

    def _inside_or_before(self, op: Op) -> bool:
        module = self.run.modules.get(op.module) if op.module is not None else None
        return module is None or module.kind != "loss"

    @staticmethod
    def _could_tell(padded: Padded, shape: list[int], dtype: str) -> bool:
        """A length per sample, or a mask with a value per step."""
        return len(shape) == 1 or "bool" in dtype or (len(shape) == 2 and shape[1] > 1 and len(padded.stat.shape) == 3)

    def _in_model(self, padded: Padded, op: Op) -> bool:
        module = self.run.modules.get(op.module) if op.module is not None else None
        return module is not None and module.root == self.run.modules[padded.module].root

    def _is_for_loss(self, op: Op) -> bool:
        """Whether all that comes of a tensor, reshaped maybe, is the target of a loss, as with labels handed to the model."""
        if "loss" in plain(op.name) or "cross_entropy" in plain(op.name):
            return True
        takers = self.trace.consumers.get(op.seq, [])
        return plain(op.name) in _RESHAPES and bool(takers) and all(self._is_for_loss(taker) for taker in takers)

    def first_takers(self, padded: Padded) -> list[Op]:
        return [taker.op for taker in self.layers.consumers(padded.stat.shape, padded.stat.dtype, padded.module)]
