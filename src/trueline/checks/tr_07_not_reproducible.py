"""Not reproducible

## What it checks
Whether a script that sets a seed gives the same first steps when it is run a second time; and if not, what is not fixed: the
network, the data, the initial weights, the hyper-parameters, or the seed itself.

## Why it hurts accuracy
A result that cannot be repeated cannot be compared: whether a change helped, or a problem is gone, is not to be told from
chance. The guide's way to locate an accuracy problem starts with all randomness fixed.

## Method
`trueline diagnose` runs the script's first 64 steps again, with the same command, in a sandbox where the files are as
they were before the first run and where nothing that is written lasts (docs/safety.md), and compares: values of the
seeds, modules, content of the weights before training, fingerprints and targets of every batch, hyper-parameters, the
loss of every step. The first thing that differs is the factor. Which library's random stream is never seeded is known
from the calls that seed; the lines that draw from it are looked up in the script's text.

It is a problem only where the script means to be reproducible: it seeds the framework, or two libraries, or does so in a function
that is named after it. Losses that first part by less than one in 100,000, with the same weights and batches, part by
rounding (sums in another order on several threads) and are not a problem.

## Evidence
The step at which the runs part, what differs then, which libraries were seeded on which line.

## Limits
Only the first 64 steps, and only where they took no longer than a second run may take: a minute and the script's own
time (`--rerun-time` says otherwise). Without a seed runs differ by design: not applicable. `trueline check` never runs a
script; `--no-rerun` leaves the rerun out, as does a kernel that allows no sandbox. Where runs differ and the second one
lacked something that the first one had (a file that could not be kept, the network), the item is not checked.
MindSpore's dropout on CPU is not always the same with the same seed: where losses part and nothing but such a layer is
left to explain it, the item is not checked. Nor is it where several workers of a MindSpore pipeline draw random numbers,
whose order no seed fixes.

## What to do
Seed every library that draws (`random.seed`, `np.random.seed`, `torch.manual_seed`, `mindspore.set_seed`), with a fixed number,
before the model and the data are made; give loaders and generators of their own a seeded generator.
"""

from __future__ import annotations

import re

import msgspec

from trueline.checks._dataflow import plain
from trueline.checks._random_sources import Draw, unseeded_draws
from trueline.checks._repetition import ROUNDING, Repetition
from trueline.checks._words import words_of
from trueline.checks.base import Item
from trueline.errors import TruelineError
from trueline.model import Conclusion, Event, Evidence, Finding, Location
from trueline.store import RERUN_FOLDER, Run
from trueline.store.reruns import rerun_notes

item = Item(__name__, __doc__)

RANK = 58

_FEWEST_STEPS = 2
_SEED_FUNCTION = re.compile(r"seed|reprod|determin|fix_?rand", re.IGNORECASE)


class Factor(msgspec.Struct, frozen=True):
    """What is not fixed, and where."""

    summary: str
    location: Location | None
    fix: str
    evidence: list[Evidence] = []
    confidence: float = 0.85
    inside: bool = False
    """Whether it is something that the network draws while it runs."""


def conclude(run: Run) -> Finding:
    if not run.steps:
        return item.not_applicable("No training was seen in this run.")
    if not run.events_of("seed"):
        return item.not_applicable("The script sets no seed: its runs differ by design.")
    folder = run.directory / RERUN_FOLDER
    note = rerun_notes(run.directory).get(RERUN_FOLDER)
    if not folder.is_dir():
        if note is not None:
            return item.not_checked(f"the script was not run a second time: {note.refused or 'it left no record'}.")
        return item.not_checked("a recorded run is not run a second time; trueline diagnose SCRIPT does that when it records it.")
    try:
        second = Run(folder)
    except TruelineError as problem:
        return item.not_checked(f"the second run left no record ({problem}).")
    try:
        finding = _conclude(run, Repetition(run, second))
    finally:
        second.close()
    if finding.conclusion is Conclusion.PROBLEM_FOUND and note is not None and note.doubt is not None:
        return item.not_checked(f"two runs differ, but the second did not find all that the first one found: {note.doubt}.")
    return finding


def _conclude(run: Run, both: Repetition) -> Finding:
    if both.steps < min(_FEWEST_STEPS, len(run.steps)):
        return item.not_checked("the second run ended before it had trained.")
    seeded = {
        event.detail["library"] for event in run.events_of("seed") if event.step == 0 and event.detail.get("seed") is not None
    }
    draws = unseeded_draws(run, seeded)
    factor = _seed(both) or _weights(run, both, draws) or _data(run, both, seeded, draws) or _rest(run, both, draws)
    parted = both.differing_loss
    if parted is not None and parted[1] > ROUNDING and (factor is None or factor.inside) and _draws_anew(run):
        return item.not_checked(
            "losses of two runs part with the same weights and batches, and the network has dropout, which MindSpore does not "
            "repeat on CPU although the seed is the same."
        )
    if _is_drawn_in_parallel(run, both):
        return item.not_checked(
            "samples differ between two runs, and several workers draw random numbers for them, in no fixed order: "
            "`num_parallel_workers=1` of the `map` makes runs comparable."
        )
    if factor is None:
        return _same(both)
    if not _means_to_repeat(run, seeded):
        libraries = " and ".join(sorted(seeded)) or "no library with a number"
        return item.not_checked(f"two runs differ, but only the stream of {libraries} is seeded: perhaps no more was meant.")
    return _problem(both, factor)


def _is_drawn_in_parallel(run: Run, both: Repetition) -> bool:
    """Whether the first batch that differs went through a MindSpore pipeline whose workers share a random stream."""
    pair = both.differing_batch
    loader = run.loaders.get(pair[0].loader) if pair is not None and pair[0].loader is not None else None
    return loader is not None and bool(loader.settings.get("draws_in_parallel")) and not both.differing_weights


def _draws_anew(run: Run) -> bool:
    """Whether the network holds an operation that differs from run to run whatever is seeded."""
    layers = any(module.kind == "dropout" for module in run.modules.values())
    return run.framework == "mindspore" and (layers or any("dropout" in plain(op.name) for op in run.ops))


def _means_to_repeat(run: Run, seeded: set[str]) -> bool:
    if words_of(run).library in seeded or len(seeded) > 1:
        return True
    functions = [event.location.function or "" for event in run.events_of("seed") if event.location is not None]
    return any(_SEED_FUNCTION.search(name) for name in functions) or not seeded


def _same(both: Repetition) -> Finding:
    parted = both.differing_loss
    limits = (
        f"{both.steps} steps were compared. A loss, batch, initial weight or hyper-parameter that differs in them "
        "would have been seen, "
        f"losses from one part in {1 / ROUNDING:,.0f} on."
    )
    if parted is None:
        return item.no_problem(
            f"The first {both.steps} steps are the same when they are run again.", limits=limits, confidence=0.95
        )
    return item.no_problem(
        f"The first {both.steps} steps are the same but for rounding: losses first part at step {parted[0]}, by {parted[1]:.1g}.",
        limits=limits,
        confidence=0.85,
    )


def _problem(both: Repetition, factor: Factor) -> Finding:
    parted = both.differing_loss
    told = [Evidence(f"The losses part at step {parted[0]}, by {parted[1]:.2g} of their size.", {}, parted[0])] if parted else []
    return item.problem(
        factor.summary,
        confidence=factor.confidence,
        location=factor.location,
        fix=factor.fix,
        evidence=[*factor.evidence, *told, *_seeds_told(both.first)],
        limits=f"{both.steps} steps of two runs of the same command were compared.",
    )


def _seeds_told(run: Run) -> list[Evidence]:
    seen: dict[Location | None, Event] = {}
    for event in run.events_of("seed"):
        seen.setdefault(event.location, event)
    return [
        Evidence(f"{event.detail.get('library')} is seeded with {event.detail.get('seed')}.", event.detail, event.step, line)
        for line, event in list(seen.items())[:5]
    ]


def _seed(both: Repetition) -> Factor | None:
    seed = both.differing_seed
    if seed is None or (both.differing_loss or (0, 0.0))[1] <= ROUNDING:
        return None
    return Factor(
        f"The seed itself is another one in every run ({seed.detail.get('library')}: first {seed.detail.get('seed')}).",
        seed.location,
        "Seed with a fixed number, or let the user give one and fall back to a fixed one.",
        confidence=0.9,
    )


def _weights(run: Run, both: Repetition, draws: list[Draw]) -> Factor | None:
    if both.network_differs:
        return Factor(
            "The network is built differently in the two runs.",
            run.roots[0].built if run.roots else None,
            "Draw what decides the network's structure from a seeded stream.",
            [Evidence("The modules that are called differ in their paths or types.")],
        )
    differing = both.differing_weights
    if not differing:
        return None
    told = Evidence(
        f"{len(differing)} parameters start with another content: {', '.join(differing[:4])}.", {"parameters": differing[:20]}, -1
    )
    seeds = [event for event in run.events_of("seed") if event.step == 0]
    words = words_of(run)
    own_seeds = [event for event in seeds if event.detail.get("library") == words.library]
    if not own_seeds:
        return Factor(
            f"The initial weights are drawn from {words.name}'s stream, which is never seeded.",
            seeds[-1].location if seeds else None,
            f"Add `{words.seed}` beside the other seeds, before the model is built.",
            [told],
        )
    fills = {(line.file, line.line) for parameter in run.parameters.values() if (line := parameter.initialised) is not None}
    by_hand = [draw for draw in draws if (draw.location.file, draw.location.line) in fills]
    if by_hand:
        return _from_stream("The initial weights are drawn from", by_hand, told)
    return Factor(
        "The seed is set after the model has been built: its initial weights are others in every run.",
        own_seeds[0].location,
        "Set the seed before the model is built.",
        [told],
    )


def _from_stream(what: str, draws: list[Draw], told: Evidence) -> Factor:
    others = sorted({draw.location.line for draw in draws[1:]} - {draws[0].location.line})
    evidence = [told]
    if others:
        evidence.append(Evidence(f"Other lines that draw from a stream without a seed: {', '.join(map(str, others[:5]))}."))
    return Factor(f"{what} {_stream(draws[0])}, which is never seeded.", draws[0].location, _seed_it(draws[0]), evidence)


def _data(run: Run, both: Repetition, seeded: set[str], draws: list[Draw]) -> Factor | None:
    pair = both.differing_batch
    if pair is None:
        return None
    order = both.order_differs_only
    how = "the same samples in another order" if order else "other samples"
    told = Evidence(f"At step {pair[0].step} a batch differs: {how}.", {}, pair[0].step)
    what = "The samples come in another order in every run" if order else "The training data is not the same in every run"
    if draws:
        return _from_stream(f"{what}: it depends on", draws, told)
    words = words_of(run)
    if words.library not in seeded:
        line = run.events_of("seed")[-1].location
        return Factor(f"{what}: {words.name}'s stream is never seeded.", line, f"Add `{words.seed}` to the seeds.", [told])
    loader = run.loaders.get(pair[0].loader) if pair[0].loader is not None else None
    call = next((call for call in run.root_calls if call.batch == pair[0].seq), None)
    return Factor(
        f"{what}, by something that the seeds do not reach.",
        loader.built if loader is not None else call.location if call is not None else None,
        "Look for what is drawn before the seed is set, by generators of their own, or from the order of a set or of files.",
        [told],
        confidence=0.7,
    )


def _rest(run: Run, both: Repetition, draws: list[Draw]) -> Factor | None:
    """Hyper-parameters, and random operations inside of the network."""
    setting = both.differing_hyperparameter
    if setting is not None:
        optimizer = run.optimizers.get(setting[0])
        return Factor(
            f"The hyper-parameter {setting[1]} is another one in every run.",
            draws[0].location if draws else optimizer.built if optimizer is not None else None,
            "Draw hyper-parameters from a seeded stream, or fix them.",
            confidence=0.8,
        )
    parted = both.differing_loss
    if parted is None or parted[1] <= ROUNDING:
        return None
    told = Evidence("Weights before training, batches and hyper-parameters are the same.")
    if draws:
        return _from_stream("The network or its loss draws from", draws, told)
    if parted[0] > 0:
        return None
    call = next((call for call in run.root_calls if call.grad and not call.loss), None)
    return Factor(
        "The same weights and the same batch give another loss: the network draws from a stream that is not fixed.",
        call.location if call is not None else None,
        "Seed the stream that the network draws from.",
        [told],
        confidence=0.7,
        inside=True,
    )


def _stream(draw: Draw) -> str:
    names = {"numpy": "NumPy's random stream", "random": "the stream of `random`", None: "a generator without a seed"}
    return names.get(draw.library, f"the stream of {draw.library}")


def _seed_it(draw: Draw) -> str:
    calls = {"numpy": "`np.random.seed(seed)`", "random": "`random.seed(seed)`"}
    if draw.library is None:
        return "Give the generator a seed."
    return f"Add {calls[draw.library]} at the start of the script."
