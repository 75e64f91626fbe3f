"""The sets of samples that a run evaluated its models on, pass by pass, beside the samples trained on before each pass."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import cached_property

import msgspec

from trueline.model import Batch, Loader, Location, RootCall
from trueline.store import Run
from trueline.views.calls import CallRoles, TrainingCall

# A call on little else than the samples of the step beside it belongs to that step; a set that is mixed does not.
_NEARLY_ALL = 0.95
_MOST = 0.5


class Trained(msgspec.Struct, frozen=True):
    """A batch that gradients came from. `period` counts the times that training started anew before it."""

    seq: int
    batch: Batch
    period: int


class EvaluationPass(msgspec.Struct, frozen=True):
    """One look at a set of samples. `before` holds what the same training had used before it, `all_trained` what it used at
    any time."""

    batches: list[Batch]
    location: Location | None
    before: set[int]
    all_trained: set[int]

    @property
    def samples(self) -> list[int]:
        return [sample for batch in self.batches for sample in batch.fingerprints]

    @property
    def seen(self) -> list[int]:
        """The samples that had been trained on before, in their order."""
        return [sample for sample in self.samples if sample in self.before]

    @property
    def coverage(self) -> float:
        """The share of the training's samples that the pass holds."""
        return len(self.all_trained.intersection(self.samples)) / max(1, len(self.all_trained))


class EvaluationSet(msgspec.Struct, frozen=True):
    """What one line (or one loader) gave for evaluation, again and again."""

    root: int
    loader: Loader | None
    location: Location | None
    passes: list[EvaluationPass]
    training: list[Trained]


class _Evaluations(CallRoles):
    """Keeps hand-made evaluation batches of samples that are trained on as well, which are what is looked for here."""

    def _serves_training(self, call: RootCall) -> bool:
        batch = self._batch(call)
        if batch is not None and batch.loader is not None:
            return False
        return self._models_compete and (batch is None or batch.targets is None)

    def _of_adjacent_step(self, call: RootCall, training: list[TrainingCall]) -> bool:
        samples = set(self._samples(call))
        if not samples or self._is_full_pass(call):
            return False
        position = bisect_left(training, call.seq, key=lambda one: one.call.seq)
        steps = [set(self._samples(one.call)) for one in training[max(0, position - 1) : position + 1]]
        # A small part of a step on all the data may be what the script takes for a separate set.
        return len(samples & set().union(*steps)) > _NEARLY_ALL * len(samples) and any(
            len(samples) > _MOST * len(step) for step in steps
        )


class EvaluationSets:
    """Finds what was trained on and what was evaluated, per root module: models of other folds and stages do not count."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.roles = _Evaluations(run)

    @cached_property
    def trained(self) -> dict[int, list[Trained]]:
        """By root: the last batch before each backward pass whose gradients an optimizer of the root's parameters applied."""
        calls: dict[int, list[RootCall]] = defaultdict(list)
        for call in self.roles.calls:
            if call.grad:
                calls[self.roles.family(call)].append(call)
        steps = [step for step in self.run.steps if step.optimizer is not None]
        step_seqs = [step.seq for step in steps]
        restarts = _Restarts(self.run)
        found: dict[int, list[Trained]] = defaultdict(list)
        previous = -1
        for backward in self.run.events_of("backward"):
            position = bisect_left(step_seqs, backward.seq)
            optimizer = steps[position].optimizer if position < len(steps) else None
            for family in self.roles.held.get(optimizer, ()) if optimizer is not None else ():
                place = bisect_left(calls[family], backward.seq, key=lambda call: call.seq)
                last = calls[family][place - 1] if place else None
                batch = None if last is None or last.batch is None else self.roles.batches.get(last.batch)
                if last is not None and last.seq > previous and batch is not None and batch.fingerprints:
                    root = self.run.modules[last.module].root
                    period = restarts.period(root, last.seq, optimizer or 0, batch.loader)
                    found[root].append(Trained(last.seq, batch, period))
            previous = backward.seq
        return dict(found)

    @cached_property
    def training_loaders(self) -> set[int]:
        return {one.batch.loader for used in self.trained.values() for one in used if one.batch.loader is not None}

    def all(self) -> list[EvaluationSet]:
        """The sets that come from another loader than the training, or are made by hand."""
        found: list[EvaluationSet] = []
        for root, training in self.trained.items():
            family = self.roles.family_of_root.get(root, root)
            stretches = [stretch.calls for stretch in self.roles.evaluations(family)] if family in self.roles.training else []
            own = [[call for call in calls if self.run.modules[call.module].root == root] for calls in stretches]
            found += self._sets_of(root, training, [*own, *self._calls_of_copy(root)])
        return found

    def _calls_of_copy(self, root: int) -> list[list[RootCall]]:
        """Evaluations of a copy of the trained model that no optimizer holds: an average of its weights, its best state."""
        shapes = self.roles.shapes
        if sum(shapes.get(other) == shapes.get(root) for other in self.trained) > 1:
            return []
        copies = {other for other, known in shapes.items() if other not in self.trained and known == shapes.get(root) and known}
        calls = [call for call in self.roles.calls if not call.grad and self.run.modules[call.module].root in copies]
        return [[call] for call in calls if self._loader_of(call) is not None]

    def _loader_of(self, call: RootCall) -> int | None:
        batch = self.roles.batches.get(call.batch) if call.batch is not None else None
        return batch.loader if batch else None

    def _sets_of(self, root: int, training: list[Trained], stretches: list[list[RootCall]]) -> list[EvaluationSet]:
        of_loaders: dict[int, dict[int | None, dict[int, RootCall]]] = defaultdict(lambda: defaultdict(dict))
        by_hand: dict[Location | None, list[list[RootCall]]] = defaultdict(list)
        for stretch in stretches:
            here: dict[Location | None, dict[int, RootCall]] = defaultdict(dict)
            for call in stretch:
                batch = self.roles.batches.get(call.batch) if call.batch is not None else None
                if batch is None or not batch.fingerprints:
                    continue
                if batch.loader is None:
                    here[call.location].setdefault(batch.seq, call)
                elif batch.loader not in self.training_loaders:
                    of_loaders[batch.loader][batch.epoch].setdefault(batch.seq, call)
            for location, calls in here.items():
                by_hand[location].append(list(calls.values()))
        history = _History(training)
        found = []
        for number, epochs in of_loaders.items():
            loader = self.run.loaders[number]
            passes = [self._pass(list(calls.values()), history) for calls in epochs.values()]
            found.append(EvaluationSet(root, loader, loader.last_line or passes[0].location, passes, training))
        for location, looks in by_hand.items():
            found.append(EvaluationSet(root, None, location, [self._pass(calls, history) for calls in looks], training))
        return found

    def _pass(self, calls: list[RootCall], history: _History) -> EvaluationPass:
        batches = [self.roles.batches[call.batch or 0] for call in calls]
        before, everything = history.at(calls[0].seq)
        return EvaluationPass(batches, calls[0].location, before, everything)


class _History:
    """What had been trained on at a point of time, since the training last started anew."""

    def __init__(self, training: list[Trained]) -> None:
        self._seqs = [one.seq for one in training]
        self._periods = [one.period for one in training]
        self._whole: dict[int, set[int]] = defaultdict(set)
        self._first: dict[int, dict[int, int]] = defaultdict(dict)
        for place, one in enumerate(training):
            self._whole[one.period].update(one.batch.fingerprints)
            first = self._first[one.period]
            for sample in one.batch.fingerprints:
                first.setdefault(sample, place)
        self._known: dict[int, tuple[set[int], set[int]]] = {}

    def at(self, seq: int) -> tuple[set[int], set[int]]:
        place = bisect_right(self._seqs, seq)
        if place == 0:
            return set(), set()
        if place not in self._known:
            period = self._periods[place - 1]
            before = {sample for sample, first in self._first[period].items() if first < place}
            # After the first epoch nothing is added, and the sets can be shared.
            whole = self._whole[period]
            self._known[place] = (whole if len(before) == len(whole) else before, whole)
        return self._known[place]


class _Restarts:
    """Counts how often the training of a root started anew: with an optimizer or a loader that it had not used before, or after
    a state was loaded. The folds of a cross-validation that reuse one model object are told apart by that."""

    def __init__(self, run: Run) -> None:
        self._loads = [event.seq for event in run.events_of("load")]
        self._used: dict[int, set[tuple[str, int]]] = defaultdict(set)
        self._period: dict[int, int] = defaultdict(int)
        self._last: dict[int, int] = {}

    def period(self, root: int, seq: int, optimizer: int, loader: int | None) -> int:
        sources = {("optimizer", optimizer)} | ({("loader", loader)} if loader is not None else set())
        loaded = bisect_left(self._loads, seq) > bisect_left(self._loads, self._last.get(root, seq))
        if root in self._last and (loaded or not sources <= self._used[root]):
            self._period[root] += 1
        self._used[root] |= sources
        self._last[root] = seq
        return self._period[root]
