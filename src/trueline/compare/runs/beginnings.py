"""What two scripts begin with: initial weights and data. Aligned runs hide these, so they are told from the runs as they are."""

from __future__ import annotations

import math
import re

import numpy as np

from trueline.compare.runs.difference import Difference
from trueline.compare.runs.input_values import FIRST_BATCHES, input_looks, same_but_for_scales, value_difference
from trueline.compare.runs.pairing import Pair
from trueline.model import Batch, Loader, Location, TensorStat
from trueline.store import Run
from trueline.views.data_origin import where_made
from trueline.views.source import script_text

# Parameters with fewer values say too little of a distribution.
_FEWEST_VALUES = 48
# How far spreads may be apart: in standard errors, and as a ratio that hardly matters.
_ERRORS = 6.0
_MILD_RATIO = 1.15
# The largest of values that are drawn evenly lies 1.73 deviations from the middle, of normal ones further out.
_UNIFORM_PEAK, _NORMAL_PEAK = 1.85, 2.3
# A script that sets a seed for each epoch sets many.
_MOST_SEEDS = 4
# Words in a script that say that the order of the samples is drawn by its framework, or by a generator of the whole program, from
# which others draw too (MindSpore its initial weights): it is another order in every rewriting.
_DRAWN_BY_FRAMEWORK = re.compile(
    r"randperm|\b(torch|th|mint|ops)\.(randint|multinomial)\b|shuffle\s*=\s*True|RandomSampler|\.shuffle\(|random_split"
    r"|\b(np|numpy)\.random\.(permutation|choice|randint|shuffle)\b|\brandom\.(sample|shuffle|choices?|randrange|randint)\b"
)


def initial_differences(mine: Run, reference: Run, pairs: list[Pair]) -> list[Difference]:
    """Layers whose initial weights come from another distribution."""
    own, expected = _initial(mine), _initial(reference)
    found = []
    for pair in pairs:
        for role, parameter in pair.mine.parameters.items():
            other = pair.reference.parameters.get(role)
            if other is None or parameter.buffer or parameter.id not in own or other.id not in expected:
                continue
            a, b = own[parameter.id], expected[other.id]
            words = _other_distribution(a, b, math.prod(parameter.shape))
            if words is not None and parameter.loaded is None:
                module = pair.mine.module
                found.append(
                    Difference(
                        "init", role, a.std, b.std, "init", "wi.01",
                        f"The initial {role} of {module.name or module.type} has another distribution: {words}.",
                        f"Initialise {module.name or module.type} as the reference does "
                        f"(std {_number(b.std)}, from {_number(b.min)} to {_number(b.max)}).",
                        module.name, pair.reference.module.name, parameter.initialised or module.built, -1, hidden=True,
                    )
                )  # fmt: skip
    # A weight tells more than the bias beside it, and a larger one more than a smaller.
    return sorted(found, key=lambda each: each.setting != "weight")


def _initial(run: Run) -> dict[int, TensorStat]:
    return {stat.subject: stat for stat in run.stats("parameter") if stat.step == -1}


def _other_distribution(mine: TensorStat, reference: TensorStat, count: int) -> str | None:
    if count < _FEWEST_VALUES or None in (mine.std, reference.std, mine.mean, reference.mean):
        return None
    a, b = float(mine.std or 0.0), float(reference.std or 0.0)
    if min(a, b) <= 1e-3 * max(a, b):
        if max(a, b) == 0.0:
            return (
                None if mine.mean == reference.mean else f"all {_number(mine.mean)}, in the reference {_number(reference.mean)}"
            )
        return f"std {_number(a)}, in the reference {_number(b)}"
    error = math.sqrt(1.0 / count)
    if abs(math.log(a / b)) > max(math.log(_MILD_RATIO), _ERRORS * error):
        return f"std {_number(a)}, in the reference {_number(b)}"
    if abs(float(mine.mean or 0.0) - float(reference.mean or 0.0)) > max(_ERRORS * error, 0.15) * max(a, b):
        return f"mean {_number(mine.mean)}, in the reference {_number(reference.mean)}"
    peaks = [_peak(mine), _peak(reference)]
    if count >= 4 * _FEWEST_VALUES and min(peaks) < _UNIFORM_PEAK and max(peaks) > _NORMAL_PEAK:
        shapes = ["uniform" if peak < _UNIFORM_PEAK else "normal" for peak in peaks]
        return f"{shapes[0]}, in the reference {shapes[1]}"
    return None


def _peak(stat: TensorStat) -> float:
    middle, spread = float(stat.mean or 0.0), float(stat.std or 1.0)
    return max(abs(float(stat.max or 0.0) - middle), abs(float(stat.min or 0.0) - middle)) / spread


def data_differences(mine: Run, reference: Run) -> list[Difference]:
    """Other values of the same samples, another order of them, samples that are not drawn at random."""
    found = []
    order = _order_difference(mine, reference)
    if order is not None:
        found.append(order)
    loader = _training_loader(mine)
    line = where_made(mine, loader.built if loader is not None else _line_of_first_call(mine))
    same = _same_order(mine, reference, _training_batches(mine), _training_batches(reference)) is True
    values = value_difference(mine, reference, line, same_samples=same)
    if values is not None:
        found.insert(0, values)
    return found


def size_differences(mine: Run, reference: Run) -> list[Difference]:
    """Other sizes of batches, seeds, and numbers of steps."""
    own, expected = _training_batches(mine), _training_batches(reference)
    found = []
    if own and expected and own[0].size != expected[0].size and not _is_turned(mine, reference):
        loader = _training_loader(mine)
        line = loader.built if loader is not None else _line_of_first_call(mine)
        found.append(
            Difference(
                "data", "batch size", own[0].size, expected[0].size, "data", "hp.03",
                f"The batch size is {own[0].size}, in the reference {expected[0].size}.",
                f"Train with batches of {expected[0].size}, or scale the learning rate with the batch size.", None, None, line,
                -1, hidden=True,
            )
        )  # fmt: skip
    seeds = [_seeds(run) for run in (mine, reference)]
    if bool(seeds[0]) != bool(seeds[1]) or (mine.framework == reference.framework and set(seeds[0]) != set(seeds[1])):
        found.append(_told("seed", "seeds", *(_listed(each) for each in seeds)))
    if len(mine.steps) != len(reference.steps):
        found.append(_told("training", "number of steps", len(mine.steps), len(reference.steps)))
    return found


def _is_turned(mine: Run, reference: Run) -> bool:
    """Whether one side has its samples along the first axis and the other its time."""
    shapes = [next((look.shape for look in input_looks(run)), ()) for run in (mine, reference)]
    return len(shapes[0]) > 1 and shapes[0][:2] == shapes[1][1::-1]


def _seeds(run: Run) -> list[str]:
    """The seeds that the script sets, each once; not the ones that a library draws for itself."""
    given = (event.detail.get("seed") for event in run.events_of("seed"))
    return list(dict.fromkeys(str(seed) for seed in given if seed is not None))


def _listed(seeds: list[str]) -> str:
    more = f" and {len(seeds) - _MOST_SEEDS} more" if len(seeds) > _MOST_SEEDS else ""
    return (", ".join(seeds[:_MOST_SEEDS]) or "none") + more


def _told(subject: str, setting: str, mine: object, reference: object) -> Difference:
    """Something that differs and explains no divergence by itself."""
    return Difference(
        subject, setting, mine, reference, "update", "tr.07" if subject == "seed" else "hp.02",
        f"The {setting}: {mine}, in the reference {reference}.", f"Use the reference's {setting}.",
    )  # fmt: skip


def _training_batches(run: Run) -> list[Batch]:
    """The batches that training calls were fed with, in order."""
    fed = [call.batch for call in run.root_calls if call.grad and not call.loss and call.batch is not None]
    known = {batch.seq: batch for batch in run.batches}
    return [known[seq] for seq in dict.fromkeys(fed) if seq in known]


def _training_loader(run: Run) -> Loader | None:
    numbers = [batch.loader for batch in _training_batches(run)[:FIRST_BATCHES] if batch.loader is not None]
    return run.loaders.get(numbers[0]) if numbers else None


def _order_difference(mine: Run, reference: Run) -> Difference | None:
    a, b = _drawn(mine), _drawn(reference)
    own, expected = _training_batches(mine), _training_batches(reference)
    loader = _training_loader(mine)
    line = loader.built if loader is not None else _line_of_first_call(mine)
    if a is not None and b is not None and a != b:
        words = "not shuffled" if b else "shuffled"
        other = "shuffled" if b else "not shuffled"
        return Difference(
            "data", "order", words, other, "data", "dp.03", f"The samples are {words}; in the reference they are {other}.",
            "Shuffle the training samples." if b else "Take the samples in the reference's order.", None, None, line, -1,
            hidden=True,
        )  # fmt: skip
    if _order_is_the_frameworks(mine) or _order_is_the_frameworks(reference):
        return None
    if _same_order(mine, reference, own, expected) is not False:
        return None
    return Difference(
        "data", "order", "other", "", "data", "dp.03",
        "The samples come in another order than in the reference, and neither framework draws it: the scripts do so themselves.",
        "Draw the order as the reference does: the same generator, the same seed, the same calls.", None, None, line, -1,
        hidden=True,
    )  # fmt: skip


def _line_of_first_call(run: Run) -> Location | None:
    return next((call.location for call in run.root_calls if call.grad and not call.loss and call.location is not None), None)


def _drawn(run: Run) -> bool | None:
    """Whether the training samples come in random order; None where that is not known."""
    loader = _training_loader(run)
    if loader is not None and loader.sampler in {
        "RandomSampler",
        "ShuffleDataset",
        "WeightedRandomSampler",
        "DistributedSampler",
    }:
        return True
    batches = _training_batches(run)
    prints = [print_ for batch in batches for print_ in batch.fingerprints]
    if not prints or len(set(prints)) < 2:
        return None
    epoch = prints.index(prints[0], 1) if prints[0] in prints[1:] else len(prints)
    rounds = [prints[start : start + epoch] for start in range(0, len(prints), epoch)]
    whole = [each for each in rounds if len(each) == epoch and len(set(each)) > epoch // 2]
    if len(whole) > 1 and all(each == whole[0] for each in whole[1:]):
        return False
    # Samples that come again, and not in turn, are drawn.
    return True if len(set(prints)) < len(prints) else None


def _order_is_the_frameworks(run: Run) -> bool:
    """Whether the order comes from a generator of the framework: then it is another one in every framework and refactoring."""
    loader = _training_loader(run)
    if loader is not None and loader.sampler not in {None, "SequentialSampler"}:
        return True
    text = script_text(run)
    return text is None or _DRAWN_BY_FRAMEWORK.search(text) is not None


def _same_order(mine: Run, reference: Run, own: list[Batch], expected: list[Batch]) -> bool | None:
    """Whether the first batches hold the same samples; by their labels, else by what their values look like."""
    pairs = list(zip(own[:FIRST_BATCHES], expected[:FIRST_BATCHES], strict=False))
    if not pairs or any(a.size != b.size for a, b in pairs):
        return None
    if all(a.targets is not None and b.targets is not None for a, b in pairs):
        if len({target for a, _ in pairs for target in a.targets or ()}) < 2:
            return None
        return all(a.targets == b.targets for a, b in pairs)
    first, second = list(input_looks(mine)), list(input_looks(reference))
    looks = list(zip(first[:FIRST_BATCHES], second[:FIRST_BATCHES], strict=False))
    if len(looks) < 2 or any(a.shape != b.shape for a, b in looks):
        return None
    return all(np.allclose(a.mean, b.mean, rtol=1e-4, atol=1e-6) for a, b in looks) or same_but_for_scales(first, second)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"
