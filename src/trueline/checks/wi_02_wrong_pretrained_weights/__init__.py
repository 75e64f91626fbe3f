"""Wrong pretrained weights

## What it checks
Whether the weights that the script loads arrive: keys of the checkpoint that fit no parameter, parameters that no key fits, a
load that changed nothing, a load that a later initialisation wiped out, and a load into a model that is then not the one
that is trained.

## Why it hurts accuracy
`load_state_dict(..., strict=False)` and filtered dictionaries skip what does not fit without a word. The model then trains
from random values while everybody believes that it was pretrained: it needs more data and ends at a lower accuracy.

## Method
Every `load_state_dict` is recorded with its missing and unexpected keys, how many tensors changed, and a digest of each
matrix that it loaded; so are the matrices of each file that `torch.load` reads.

- *Names do not match*: half or more of the model's tensors are missing while the checkpoint offers at least half as many
  under names that the model does not know and that end alike; or a quarter or more, when one prefix ("module.", "model." …)
  turns most of the one into the other.
- *Nothing arrived*: all the model's keys are missing.
- *Wiped out*: half or more of the loaded matrices are found in no model that was called, neither when it was first called
  nor later, and an initialisation (`nn.init`, `reset_parameters`, in-place fills) was seen to write over loaded content.
- *Read and not loaded*: a file was read with `torch.load` whose matrices fit, by name and shape, a model that is trained after
  that; none of them is in it, and nothing at all is loaded afterwards.
- *Loaded elsewhere*: no loaded matrix is found in any model that was called, and the model that is trained has the class
  and the parameters of the loaded one, with fresh random content.
- *Restores nothing*: after training, the model is loaded with its own tensors, from a `state_dict()` that was kept under a
  condition (the best epoch so far) without a copy.

A head that was replaced on purpose, new layers beside loaded ones (adapters), leftovers of an old head in the checkpoint,
and copies between models of the run (target networks, moving averages) are not faults; they are listed.

## Evidence
The load with its line, the keys, the prefix, the share of loaded matrices that were still there when training began.

## Limits
Content is not judged: a complete load of the wrong file looks right without a reference. Tensors that are copied by hand
are not seen as loads. Of each load the first 50 keys and 64 matrices are kept.

## What to do
Rename the keys to what the model expects, load with strict=True (or look at what `load_state_dict` returns; MindSpore's
`load_param_into_net` returns the names that were not loaded), and load after the initialisation, into the model that is trained.
"""

from __future__ import annotations

from collections import Counter

from trueline.checks.base import Item
from trueline.checks.wi_02_wrong_pretrained_weights.unused_weights import UnusedWeights, unused_weights
from trueline.model import Event, Evidence, Finding, Location, Module
from trueline.store import Run
from trueline.views.own_weights import OwnLoad, own_load
from trueline.views.parameters import ParameterHistory, listed
from trueline.views.words import either

ITEM = Item(__name__, __doc__)
RANK = 12
CONSEQUENCES = ("cg.02", "hp.01", "hp.02")
MOST = 0.5
SOME = 0.25
# In-place functions that put new starting values; copies and rescaling of loaded content are not among them.
NOT_INITIALISATION = frozenset({"copy_", "mul_", "clamp_"})


def conclude(run: Run) -> Finding:
    loads = [event for event in run.events_of("load") if event.detail.get("keys")]
    unused = unused_weights(run)
    if unused is not None:
        return _unused_finding(run, unused)
    if not loads:
        return ITEM.not_applicable("The script loads no weights.")
    restored = own_load(run)
    if restored is not None and restored.two_names is None:
        return _restores_nothing(restored)
    for load in loads:
        finding = _names_do_not_match(run, load)
        if finding is not None:
            return finding
    for load in loads:
        contents = _contents_of_models(run, load)
        finding = _wiped_out(run, load, contents) or _loaded_elsewhere(run, load, contents)
        if finding is not None:
            return finding
    told = "; ".join(_described(load) for load in loads[:4])
    return ITEM.no_problem(
        f"The {len(loads)} loads of weights put their content where it belongs: {told}.",
        limits="Would have seen a load that left half of a model's tensors out while the checkpoint held other names, one that "
        "changed nothing for lack of fitting keys, and one whose matrices were replaced by half or more before training.",
        confidence=0.9,
        evidence=[Evidence(_described(load) + ".", _counts(load), load.step, load.location) for load in loads[:8]],
    )


def _restores_nothing(found: OwnLoad) -> Finding:
    return ITEM.problem(
        "The weights that are restored were never kept: `state_dict()` gives the model's own tensors, which training went on to "
        "change, and loading them changes nothing.",
        confidence=0.93,
        evidence=[
            Evidence(
                f"All {found.load.detail['keys']} tensors that are loaded lie at the addresses of the model's own.",
                _counts(found.load),
                found.load.step,
                found.load.location,
            )
        ],
        location=found.location,
        fix="Keep a copy: `copy.deepcopy(model.state_dict())`, or `{name: value.clone() for name, value in …}`.",
        limits="Any load of a model's own tensors after training began would have been seen.",
    )


def _counts(load: Event) -> dict[str, int]:
    detail = load.detail
    missing = detail.get("missing_count", len(detail.get("missing", [])))
    unexpected = detail.get("unexpected_count", len(detail.get("unexpected", [])))
    return {"keys": detail["keys"], "missing": missing, "unexpected": unexpected, "changed": detail.get("changed", 0)}


def _described(load: Event) -> str:
    counts = _counts(load)
    said = f"{load.detail.get('of', 'model')}: {counts['changed']} of {counts['keys']} tensors changed"
    if counts["missing"]:
        said += f", {counts['missing']} not in the checkpoint ({listed(load.detail['missing'], 2)})"
    if counts["unexpected"]:
        said += f", {counts['unexpected']} of the checkpoint not used ({listed(load.detail['unexpected'], 2)})"
    return said


# Keys that fit nothing


def _names_do_not_match(run: Run, load: Event) -> Finding | None:
    counts = _counts(load)
    # Counters of batches are never missing: the framework itself adds them to a checkpoint that lacks them.
    counters = sum(key.endswith("running_var") for key in load.detail["missing"])
    share = counts["missing"] / max(counts["keys"] - counters, 1)
    nothing = share >= 1.0
    offered = counts["unexpected"] >= MOST * counts["missing"]
    prefix = _prefix(load.detail["missing"], load.detail["unexpected"])
    if nothing or (offered and ((share >= MOST and (prefix or _renamed(load))) or (share >= SOME and prefix))):
        return _mismatch_finding(run, load, counts, prefix, nothing=nothing)
    return None


def _prefix(missing: list[str], unexpected: list[str]) -> tuple[str, bool] | None:
    """What stands before most of the checkpoint's names (True) or lacks there (False), when that is all that keeps them apart."""
    found: Counter[tuple[str, bool]] = Counter()
    for one in missing:
        for other in unexpected:
            if other != one and other.endswith("." + one):
                found[other.removesuffix(one), True] += 1
            elif other != one and one.endswith("." + other):
                found[one.removesuffix(other), False] += 1
    if not found:
        return None
    prefix, count = found.most_common(1)[0]
    return prefix if count >= MOST * min(len(missing), len(unexpected)) else None


def _renamed(load: Event) -> bool:
    """Whether missing and unexpected names end alike (`weight`, `bias` …) in about equal numbers, as after a renaming."""
    ends = [Counter(key.rpartition(".")[2] for key in load.detail[kind]) for kind in ("missing", "unexpected")]
    common = sum((ends[0] & ends[1]).values())
    return common >= MOST * max(sum(ends[0].values()), sum(ends[1].values()))


def _mismatch_finding(
    run: Run, load: Event, counts: dict[str, int], prefix: tuple[str, bool] | None, *, nothing: bool
) -> Finding:
    names = either(run, pytorch="model.state_dict()", mindspore="model.parameters_dict()")
    strictly = either(run, pytorch="load with strict=True", mindspore="see that load_param_into_net returns two empty lists")
    arrived = "nothing of the checkpoint arrives" if nothing else f"{counts['missing']} of {counts['keys']} tensors get nothing"
    if prefix is not None and prefix[1]:
        cause = f"its names start with {prefix[0]!r}, which the model's do not have"
        fix = f"Remove the prefix: {{k.removeprefix({prefix[0]!r}): v for k, v in state.items()}}, and {strictly}."
    elif prefix is not None:
        cause = f"its names lack the model's prefix {prefix[0]!r}"
        fix = f"Load into that part of the model, or add the prefix {prefix[0]!r} to every name, and {strictly}."
    elif counts["unexpected"]:
        cause = "its names are not those of the model's parameters"
        fix = f"Rename the checkpoint's keys to those of {names}, and {strictly}."
    else:
        cause = "none of the names that were handed over is one of the model's"
        fix = f"Look at what the filter leaves of the checkpoint: rename its keys to those of {names} first."
    return ITEM.problem(
        f"Loading weights into {load.detail.get('of', 'the model')}: {arrived}, because {cause}.",
        confidence=0.97 if prefix is not None or nothing else 0.85,
        evidence=[
            Evidence(
                f"{counts['missing']} of {counts['keys']} tensors of the model are missing in the checkpoint "
                f"({listed(load.detail['missing'], 3)}), {counts['unexpected']} of its keys fit nothing"
                + (f" ({listed(load.detail['unexpected'], 3)})" if counts["unexpected"] else "")
                + f"; {counts['changed']} tensors changed.",
                counts,
                load.step,
                load.location,
            )
        ],
        fix=fix,
        location=load.location,
        limits="Would have seen half of the tensors (a quarter where one prefix explains it) left out while others were offered.",
    )


# Content that did not last


def _contents_of_models(run: Run, load: Event) -> set[str]:
    """Digests of all content that parameters were seen with, of models that were called after the load.

    A model that the script trained before, to make the checkpoint, still holds what was loaded.
    """
    called = {run.modules[call.module].root for call in run.root_calls if call.seq > load.seq}
    return {
        snapshot.digest
        for number, snapshots in run.snapshots.items()
        if run.parameters[number].root in called
        for snapshot in snapshots
    }


def _share_left(load: Event, contents: set[str]) -> float | None:
    loaded = load.detail.get("content") or {}
    if not loaded:
        return None
    return sum(digest in contents for digest in loaded.values()) / len(loaded)


def _is_before_training(run: Run, load: Event) -> bool:
    if load.step == 0:
        return bool(run.steps) and load.seq < run.steps[0].seq
    # A later model of the script: it is called for the first time after the load, and trained then.
    first_calls: dict[int, int] = {}
    for call in run.root_calls:
        first_calls.setdefault(run.modules[call.module].root, call.seq)
    return any(
        first_calls.get(run.modules[call.module].root, 0) > load.seq and call.grad and not call.loss
        for call in run.root_calls
        if call.seq > load.seq
    )


def _next_load_of_same(run: Run, load: Event) -> Event | None:
    """A later load of the same class may have put other content in its place, as loads in a loop over folds do."""
    later = [event for event in run.events_of("load") if event.seq > load.seq and event.detail.get("of") == load.detail.get("of")]
    return later[0] if later else None


def _wiped_out(run: Run, load: Event, contents: set[str]) -> Finding | None:
    left = _share_left(load, contents)
    if left is None or left > MOST or not _is_before_training(run, load) or _next_load_of_same(run, load) is not None:
        return None
    written = [
        event
        for event in run.events_of("init_after_load")
        if event.seq > load.seq and event.detail.get("matrix", True) and event.detail.get("by") not in NOT_INITIALISATION
    ]
    if not written:
        return None
    loaded = load.detail["content"]
    where = written[0].location
    return ITEM.problem(
        f"The weights loaded at {load.location} are overwritten before training: {1 - left:.0%} of the loaded matrices were "
        f"initialised anew at {where}.",
        confidence=0.97,
        evidence=[
            Evidence(_described(load) + ".", _counts(load), load.step, load.location),
            Evidence(
                f"{len(written)} fills of loaded tensors by {listed(sorted({str(e.detail.get('by')) for e in written}))}; "
                f"{len(loaded) - round(left * len(loaded))} of {len(loaded)} loaded matrices are in no model that was called.",
                {"share_left": left, "fills": len(written)},
                written[0].step,
                where,
            ),
        ],
        fix=f"Initialise first and load afterwards: move the load below {where}, or initialise only the new layers.",
        location=where,
        limits="Would have seen half of the loaded matrices replaced before the first step.",
    )


def _loaded_elsewhere(run: Run, load: Event, contents: set[str]) -> Finding | None:
    """A model that was loaded and never called, while another one of its kind is trained from random values."""
    left = _share_left(load, contents)
    if left is None or left > 0 or not _is_before_training(run, load) or _next_load_of_same(run, load) is not None:
        return None
    history = ParameterHistory(run)
    names = set(load.detail["content"])
    for root in run.roots:
        trained = [p for p in history.weights if p.root == root.id and len(p.shape) > 1]
        same = root.type == load.detail.get("of") and {p.path for p in trained} >= names
        fresh = [p for p in trained if history.is_fresh(p)]
        if not same or root.id not in history.trained_roots or len(fresh) < len(trained) or _held_at(run, load.location):
            continue
        return _elsewhere_finding(load, root, _where_built(root, load))
    return None


def _held_at(run: Run, location: Location | None) -> bool:
    """Whether a parameter of a called model got its content at this line."""
    return any(parameter.loaded is not None and parameter.loaded == location for parameter in run.parameters.values())


def _where_built(root: Module, load: Event) -> Location | None:
    """The line that builds the trained model, when it comes after the load in the same function; else the load."""
    built = root.built
    if built is None or load.location is None:
        return load.location
    beside = built.file == load.location.file and built.function == load.location.function
    return built.of_module(root.name) if beside and built.line > load.location.line else load.location


def _unused_finding(run: Run, unused: UnusedWeights) -> Finding:
    read, root = unused.read, unused.root
    load = either(run, pytorch="load_state_dict", mindspore="load_param_into_net")
    how = either(run, pytorch=f"{root.name}.load_state_dict(...)", mindspore=f"load_param_into_net({root.name}, ...)")
    return ITEM.problem(
        f"The weights read at {read.location} never reach {root.name}, which they fit: it trains from other values.",
        confidence=0.93,
        evidence=[
            Evidence(
                f"{unused.fitting} of {len(read.detail['matrices'])} matrices of the file have the names and shapes of "
                f"{root.name}'s ({root.type}); none of them was in it when training began or later, and {load} is not called "
                "after the file was read.",
                {"fitting": unused.fitting, "matrices": len(read.detail["matrices"])},
                read.step,
                read.location,
            )
        ],
        fix=f"Put them in: {how} with what was read, before training.",
        location=read.location,
        limits="Would have seen a file with two or more matrices of the trained model that are not in it.",
    )


def _elsewhere_finding(load: Event, root: Module, where: Location | None) -> Finding:
    return ITEM.problem(
        f"The weights loaded at {load.location} are not in the model that is trained: {root.name} was built separately and "
        "starts from random values.",
        confidence=0.92,
        evidence=[
            Evidence(_described(load) + ".", _counts(load), load.step, load.location),
            Evidence(
                f"None of the {len(load.detail['content'])} loaded matrices is in a model that was called; {root.name} "
                f"({root.type}, the same class) holds fresh random values when training starts.",
                {"share_left": 0.0},
                -1,
                root.built,
            ),
        ],
        fix="Train the model into which the weights were loaded: do not build it again after the load.",
        location=where,
        limits="Would have seen a load none of whose matrices is in a model that was called.",
    )
