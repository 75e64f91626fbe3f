"""A run seen from all of its ranks: what they said to each other, and whether they hold the same weights and gradients."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from trueline.model import Event, Parameter, RootCall, TensorStat
from trueline.store import Run
from trueline.views.parameters import ParameterHistory
from trueline.views.rank_words import RankWords, rank_words

WRAPPER = "DistributedDataParallel"
# Ranks that pass tensors on to single others hold different parts of one model.
_SPLITTING = {"all_to_all", "all_to_all_single", "send", "recv", "isend", "irecv"}
# Rounding in another order changes the last bits of a sum; this is hundreds of times more.
_TOLERANCE = 1e-5
# Before the first step, and before the first optimizer step of the run.
_MOMENTS = ("min", "max", "mean", "std", "l2")

Key = tuple[str, tuple[int, ...], int]


def unrecorded_ranks(run: Run) -> str | None:
    """What to tell when only one of several ranks left a record."""
    if run.info.world_size < 2 or len(run.ranks) > 1:
        return None
    launch = rank_words(run.framework).launch
    return f"only one of {run.info.world_size} ranks was recorded. Start all of them recorded: {launch}"


class Ranks:
    """The records of all ranks of one run. Parameters are named by path, shape and how many of that name came before."""

    def __init__(self, run: Run) -> None:
        self.runs = {rank: run if rank == run.rank else run.of_rank(rank) for rank in run.ranks}
        self.first = self.runs[run.ranks[0]]
        self._asked = run

    def close(self) -> None:
        for run in self.runs.values():
            if run is not self._asked:
                run.close()

    @property
    def words(self) -> RankWords:
        return rank_words(self.first.framework)

    @cached_property
    def trains(self) -> bool:
        """Whether more than one rank trains."""
        return sum(bool(run.events_of("backward")) for run in self.runs.values()) > 1

    def operations(self, *names: str) -> dict[int, list[Event]]:
        """The events of these collective operations, by rank."""
        return {
            rank: [event for event in run.events_of("collective") if event.detail.get("operation") in names]
            for rank, run in self.runs.items()
        }

    def any_of(self, *names: str) -> bool:
        return any(self.operations(*names).values())

    @property
    def form_a_group(self) -> bool:
        return self.any_of("init_process_group", WRAPPER)

    @property
    def split_the_model(self) -> bool:
        """Whether the ranks hold different parts of one model, as far as structure tells."""
        sharded = any(
            module.type.startswith(("FSDP", "FullyShardedDataParallel"))
            for run in self.runs.values() for module in run.modules.values()
        )  # fmt: skip
        return sharded or self.any_of(*_SPLITTING)

    def reductions_of(self, content: str) -> dict[int, list[Event]]:
        """The all-reduces and broadcasts of parameters or gradients that the script calls itself, by rank."""
        known = self.operations("all_reduce", "broadcast", "reduce")
        return {rank: [event for event in events if event.detail.get("of") == content] for rank, events in known.items()}

    @property
    def averages(self) -> bool:
        """Whether anything was done to make one model of the ranks: a wrapper, or reductions of gradients or weights."""
        return self.averages_gradients or any(self.reductions_of("parameter").values())

    @property
    def averages_gradients(self) -> bool:
        """A wrapper, a reduction of gradients, or one inside of compiled steps after which the ranks hold the same weights."""
        if self.any_of(WRAPPER) or any(self.reductions_of("gradient").values()):
            return True
        later = [step for step in self.shared_steps if step > 0]
        return bool(later) and self.reduces_inside and not self.weights_differ(later[-1])

    @property
    def reduces_inside(self) -> bool:
        """Whether compiled steps hold a reduction; of what cannot be seen."""
        return any(event.detail.get("compiled") for events in self.operations("all_reduce").values() for event in events)

    # Weights and gradients

    @cached_property
    def parameters(self) -> dict[int, dict[Key, Parameter]]:
        return {rank: _keyed(run) for rank, run in self.runs.items()}

    @cached_property
    def common(self) -> list[Key]:
        """The trained parameters that all ranks have."""
        kept = [set(keyed) for keyed in self.parameters.values()]
        return [key for key in self.parameters[self.first.rank] if all(key in keys for keys in kept)]

    @cached_property
    def _weights(self) -> dict[int, dict[tuple[int, int], TensorStat]]:
        return {rank: {(stat.step, stat.subject): stat for stat in run.stats("parameter")} for rank, run in self.runs.items()}

    @cached_property
    def _gradients(self) -> dict[int, dict[tuple[int, int], TensorStat]]:
        return {rank: {(stat.step, stat.subject): stat for stat in run.stats("gradient")} for rank, run in self.runs.items()}

    @cached_property
    def _digests(self) -> dict[int, dict[tuple[int, int], str]]:
        return {
            rank: {(shot.step, key): shot.digest for key, shots in run.snapshots.items() for shot in shots}
            for rank, run in self.runs.items()
        }

    @cached_property
    def shared_steps(self) -> list[int]:
        """The steps at which every rank's weights were looked at."""
        steps = [{step for step, _ in digests} for digests in self._digests.values()]
        return sorted(set.intersection(*steps)) if steps else []

    def weights_differ(self, step: int) -> list[Key]:
        """The parameters whose content is not the same on all ranks just before this step's update."""
        found = []
        for key in self.common:
            ids = {rank: (step, keyed[key].id) for rank, keyed in self.parameters.items()}
            if any(place not in self._digests[rank] for rank, place in ids.items()):
                continue
            if len({self._digests[rank][place] for rank, place in ids.items()}) > 1 and _apart(
                [self._weights[rank].get(place) for rank, place in ids.items()]
            ):
                found.append(key)
        return found

    def gradients_differ(self, step: int) -> list[Key]:
        found = []
        for key in self.common:
            stats = [self._gradients[rank].get((step, keyed[key].id)) for rank, keyed in self.parameters.items()]
            present = [stat for stat in stats if stat is not None]
            if present and (len(present) < len(stats) or _apart(stats)):
                found.append(key)
        return found

    @cached_property
    def gradients_seen(self) -> bool:
        """Whether every rank's gradients could be looked at; those inside of compiled steps could not."""
        return not any("gradients" in run.unseen for run in self.runs.values())

    @cached_property
    def made_equal(self) -> int:
        """The last step that began with a broadcast of the weights when it was compiled; -2 for none."""
        exchanged = [event for events in self.reductions_of("parameter").values() for event in events]
        return max((event.step for event in exchanged if event.detail.get("compiled")), default=-2)

    def training_calls(self, rank: int) -> list[RootCall]:
        run = self.runs[rank]
        return [call for call in run.root_calls if call.grad and not call.loss and call.module in run.modules]


def _apart(stats: list[TensorStat | None]) -> bool:
    """Whether tensors differ by more than rounding; what was not measured counts as different."""
    known = [stat for stat in stats if stat is not None]
    if len(known) < len(stats):
        return True
    first = known[0]
    scale = max((abs(stat.l2 or 0.0) / max(1, _size(stat)) ** 0.5 for stat in known), default=0.0) or 1e-30
    for other in known[1:]:
        for name in _MOMENTS:
            one, two = getattr(first, name), getattr(other, name)
            if one is None or two is None:
                if one is not two:
                    return True
                continue
            unit = max(abs(one), abs(two)) if name == "l2" else scale
            if abs(one - two) > _TOLERANCE * max(unit, 1e-30):
                return True
    return False


def _size(stat: TensorStat) -> int:
    size = 1
    for length in stat.shape:
        size *= length
    return size


def _keyed(run: Run) -> dict[Key, Parameter]:
    """The parameters that optimizers hold, under names that are the same with and without a wrapper around the model."""
    history = ParameterHistory(run)
    seen: dict[tuple[str, tuple[int, ...]], int] = defaultdict(int)
    found: dict[Key, Parameter] = {}
    for parameter in history.weights:
        if not history.is_held(parameter) and not any(shot.trainable for shot in history.snapshots(parameter)):
            continue
        path = parameter.path
        while path.startswith("module."):
            path = path.removeprefix("module.")
        number = seen[path, parameter.shape]
        seen[path, parameter.shape] += 1
        found[path, parameter.shape, number] = parameter
    return found
