"""Which calls of a run's models train them and which evaluate them.

A *family* is a set of root modules that share parameters (a model and its wrapper, a model and a part of it called on its
own); it is named by the smallest of its root ids. Only families whose parameters an optimizer holds can be trained.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import cached_property
from itertools import pairwise

import msgspec

from trueline.model import Batch, Location, RootCall, Step
from trueline.store import Run
from trueline.views.event_order import EventOrder

_MOST = 0.5


class TrainingCall(msgspec.Struct, frozen=True):
    """The call of a family whose gradients one optimizer step applied."""

    call: RootCall
    step: Step


class Stretch(msgspec.Struct, frozen=True):
    """Calls in a row without a backward pass or an optimizer step between them, taken for an evaluation."""

    calls: list[RootCall]


class CallRoles:
    """Sorts the root calls of a run into training and evaluation. What is neither (a generator that feeds a discriminator,
    pseudo-labels, a momentum encoder, acting in an environment) appears in none of the two."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.order = EventOrder(run, "backward", "zero_grad", "optimizer_step")
        self.calls = [call for call in run.root_calls if not call.loss and call.module in run.modules]
        self.batches: dict[int, Batch] = {batch.seq: batch for batch in run.batches}
        self._evaluations: dict[int, list[Stretch]] = {}
        self._feeding = {call.fed_by for call in self.calls if call.grad and call.fed_by is not None}

    @cached_property
    def family_of_root(self) -> dict[int, int]:
        parent: dict[int, int] = {root.id: root.id for root in self.run.roots}

        def find(root: int) -> int:
            while parent.setdefault(root, root) != root:
                root = parent[root]
            return root

        for known in (self.run.parameters, self.run.modules):
            for thing in known.values():
                if thing.same_as is not None and thing.same_as in known:
                    one, other = sorted((find(thing.root), find(known[thing.same_as].root)))
                    parent[other] = one
        return {root: find(root) for root in list(parent)}

    def family(self, call: RootCall) -> int:
        root = self.run.modules[call.module].root
        return self.family_of_root.get(root, root)

    @cached_property
    def held(self) -> dict[int, set[int]]:
        """The families that each optimizer holds trainable parameters of."""
        held: dict[int, set[int]] = defaultdict(set)
        for entry in self.run.optimizer_parameters:
            parameter = None if entry.parameter is None else self.run.parameters.get(entry.parameter)
            if parameter is not None and parameter.trainable:
                held[entry.optimizer].add(self.family_of_root.get(parameter.root, parameter.root))
        return held

    @cached_property
    def training(self) -> dict[int, list[TrainingCall]]:
        """By family: for every optimizer step the last call with gradients before its last backward pass. Earlier calls of
        the same step may serve something else, such as an attack on the inputs."""
        by_family: dict[int, list[RootCall]] = defaultdict(list)
        for call in self.calls:
            if call.grad:
                by_family[self.family(call)].append(call)
        seqs = {family: [call.seq for call in calls] for family, calls in by_family.items()}
        found: dict[int, list[TrainingCall]] = defaultdict(list)
        previous: dict[int, int] = defaultdict(lambda: -1)
        for step in self.run.steps:
            if step.optimizer is None:
                continue
            backward = self.order.last("backward", step.seq)
            for family in self.held.get(step.optimizer, ()) if backward else ():
                position = bisect_left(seqs.get(family, []), backward.seq) if backward else 0
                if position and by_family[family][position - 1].seq > previous[step.optimizer]:
                    found[family].append(TrainingCall(by_family[family][position - 1], step))
            previous[step.optimizer] = step.seq
        return dict(found)

    @cached_property
    def training_loaders(self) -> dict[int, set[int | None]]:
        return {
            family: {batch.loader for batch in map(self._batch, (trained.call for trained in calls)) if batch}
            for family, calls in self.training.items()
        }

    @cached_property
    def _training_samples(self) -> set[int]:
        seen: set[int] = set()
        for calls in self.training.values():
            for trained in calls:
                seen.update(self._samples(trained.call))
        return seen

    def _batch(self, call: RootCall) -> Batch | None:
        return None if call.batch is None else self.batches.get(call.batch)

    def _samples(self, call: RootCall) -> tuple[int, ...]:
        batch = self._batch(call)
        return batch.fingerprints if batch else ()

    def loader_of(self, call: RootCall) -> int | None:
        batch = self._batch(call)
        return batch.loader if batch else None

    def evaluations(self, family: int) -> list[Stretch]:
        """The stretches of calls that evaluate a trained family, after its first training step, or a copy of one."""
        if family not in self._evaluations:
            training = self.training.get(family, [])
            found = (
                self._without_gradients(family, training) + self._with_gradients(family, training)
                if training
                else self._of_copy(family)
            )
            self._evaluations[family] = sorted(found, key=lambda stretch: stretch.calls[0].seq)
        return self._evaluations[family]

    def _of_copy(self, family: int) -> list[Stretch]:
        """Evaluations of a family that is not trained but has the parameters of one that is, an average of its weights maybe:
        calls without gradients, several in a row, on batches of a loader that no training step is fed by."""
        shapes = self.shapes
        trained = {root for root, of in self.family_of_root.items() if of in self.training}
        copies = {root for root, of in self.family_of_root.items() if of == family and shapes.get(root)}
        if not any(shapes[copy] == shapes.get(root) for copy in copies for root in trained):
            return []
        stretches: list[list[RootCall]] = []
        for call in self.calls:
            if call.grad or self.family(call) != family or call.seq in self._feeding or not self._is_full_pass(call):
                continue
            if stretches and not self._trains_between(stretches[-1][-1].seq, call.seq):
                stretches[-1].append(call)
            else:
                stretches.append([call])
        return [Stretch(calls) for calls in stretches if len(calls) > 1]

    @cached_property
    def shapes(self) -> dict[int, list[tuple[str, tuple[int, ...]]]]:
        """By root: the names and shapes of its parameters."""
        shapes: dict[int, list[tuple[str, tuple[int, ...]]]] = defaultdict(list)
        for parameter in self.run.parameters.values():
            shapes[parameter.root].append((parameter.path, parameter.shape))
        return {root: sorted(known) for root, known in shapes.items()}

    def _without_gradients(self, family: int, training: list[TrainingCall]) -> list[Stretch]:
        stretches: list[list[RootCall]] = []
        open_calls: list[RootCall] = []
        for call in self.calls:
            if call.seq <= training[0].step.seq:
                continue
            cut = open_calls and self._trains_between(open_calls[-1].seq, call.seq)
            if open_calls and (call.grad or cut):
                if not call.grad or self.family(call) in {self.family(earlier) for earlier in open_calls}:
                    stretches.append(open_calls)
                open_calls = []
            if not call.grad:
                open_calls.append(call)
        if open_calls:
            stretches.append(open_calls)
        own = [[call for call in calls if self.family(call) == family and call.seq not in self._feeding] for calls in stretches]
        near = [[call for call in calls if not self._of_adjacent_step(call, training)] for calls in own]
        return self._plausible([Stretch(calls) for calls in near if calls], training)

    def _trains_between(self, start: int, end: int) -> bool:
        return self.order.any_between("backward", start, end) or self.order.any_between("optimizer_step", start, end)

    def _of_adjacent_step(self, call: RootCall, training: list[TrainingCall]) -> bool:
        """Whether a call looks at the samples that the step before or after it trains on."""
        samples = set(self._samples(call))
        if not samples or self._is_full_pass(call):
            return False
        position = bisect_left(training, call.seq, key=lambda trained: trained.call.seq)
        near = {sample for trained in training[max(0, position - 1) : position + 1] for sample in self._samples(trained.call)}
        return len(samples & near) > _MOST * len(samples)

    def _is_full_pass(self, call: RootCall) -> bool:
        """Whether the batch comes from a loader that no training step is fed by."""
        loader = self.loader_of(call)
        return loader is not None and all(loader not in loaders for loaders in self.training_loaders.values())

    def _plausible(self, stretches: list[Stretch], training: list[TrainingCall]) -> list[Stretch]:
        """Leave out the lines that are called at most of the steps on ever new samples: they are part of the step."""
        first_calls: dict[Location | None, list[RootCall]] = defaultdict(list)
        for stretch in stretches:
            for line, call in {call.location: call for call in reversed(stretch.calls)}.items():
                first_calls[line].append(call)
        of_the_step = {
            line
            for line, calls in first_calls.items()
            if len(calls) > 1 and len(calls) >= _MOST * len(training) and not self._repeat(calls)
        }
        kept = [
            [call for call in stretch.calls if call.location not in of_the_step and not self._serves_training(call)]
            for stretch in stretches
        ]
        return [Stretch(calls) for calls in kept if calls]

    @cached_property
    def _models_compete(self) -> bool:
        """Whether several models are trained by optimizers of their own in turns, as in a GAN, and not one after the other."""
        optimizers = {trained.step.optimizer for calls in self.training.values() for trained in calls}
        spans = sorted((calls[0].call.seq, calls[-1].call.seq) for calls in self.training.values() if calls)
        in_turns = any(later[0] < earlier[1] for earlier, later in pairwise(spans))
        return len(self.training) > 1 and len(optimizers) > 1 and in_turns

    def _repeat(self, calls: list[RootCall]) -> bool:
        """Whether calls look at the same samples again and again, as a validation set is looked at."""
        samples = [self._samples(call) for call in calls]
        return all(samples) and len(set(samples)) <= _MOST * len(samples)

    def _serves_training(self, call: RootCall) -> bool:
        """Hand-made batches of samples that are trained on at another time (acting in an environment, a look at the training
        data), or that one of several competing models is fed without targets (pictures drawn from a generator)."""
        batch = self._batch(call)
        if batch is not None and batch.loader is not None:
            return False
        if self._models_compete and (batch is None or batch.targets is None):
            return True
        samples = set(batch.fingerprints) if batch else set()
        return bool(samples) and len(samples & self._training_samples) > _MOST * len(samples)

    def _with_gradients(self, family: int, training: list[TrainingCall]) -> list[Stretch]:
        """Evaluations for which nobody switched gradients off: told by their loader, by their place after the last backward
        pass, or by a `zero_grad` between them and the next training call."""
        trained = {one.call.seq for one in training}
        lines = {one.call.location for one in training}
        loaders = self.training_loaders[family]
        starts = sorted(trained)
        found: list[list[RootCall]] = []
        previous: RootCall | None = None
        for call in self.calls:
            if not call.grad or call.seq <= training[0].step.seq or call.seq in trained or self.family(call) != family:
                continue
            loader = self.loader_of(call)
            last = not self.order.any_between("backward", call.seq, 1 << 62)
            elsewhere = call.location not in lines
            position = bisect_left(starts, call.seq)
            cleared = (
                position < len(starts)
                and not self.order.any_between("backward", call.seq, starts[position])
                and self.order.any_between("zero_grad", call.seq, starts[position])
            )
            foreign = loader is not None and loader not in loaders
            if not (foreign or (elsewhere and (last or cleared))) or self._of_adjacent_step(call, training):
                continue
            if previous and found and not self._trains_between(previous.seq, call.seq):
                found[-1].append(call)
            else:
                found.append([call])
            previous = call
        several_batches = [calls for calls in found if self._is_evaluation(calls)]
        return self._plausible([Stretch(calls) for calls in several_batches], training)

    def _is_evaluation(self, calls: list[RootCall]) -> bool:
        """One call of a foreign loader's batch may be a second input of a training step; two batches in a row are not."""
        if any(self.loader_of(call) is None for call in calls):
            return True
        return len({call.batch for call in calls}) > 1 or not self.order.any_between("backward", calls[-1].seq, 1 << 62)
