"""The difference benchmark: edits and their lines, the scripts, the arithmetic, and what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.differences import _tables as tables
from benchmarks.differences._case import FAITHFUL, MINE, PLANTED, REFERENCE, WAYS, Case, different, faithful, only, script
from benchmarks.differences._difference import Edit, EditMisfit, applied, difference, line_of, planted
from benchmarks.differences._kind import KINDS
from benchmarks.differences._score import Outcome, misses, outcome_of, says_one_of, score, what_is_wrong
from benchmarks.differences.run import PAGE, parse_arguments, resumed, selection
from benchmarks.shares import Share
from benchmarks.starting import so_far

MODELS = list(PLANTED)
LEAST_PER_MODEL = 10


# The scripts


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["reference", *WAYS])
def test_every_script_compiles_and_knows_nothing_of_trueline(model: str, name: str) -> None:
    text = script(model, name)
    compile(text, f"{name}.py", "exec")
    assert "trueline" not in text.lower()
    assert ("import mindspore" in text) is (name == "port")


def test_half_of_the_ports_are_compiled() -> None:
    assert [model for model in MODELS if "GRAPH_MODE" in script(model, "port")] == ["cnn", "transformer"]


def test_faithful_pairs_are_both_ways_of_each_model_and_the_variants() -> None:
    names = {case.name for case in faithful()}
    assert names >= {f"{model}/{way}/{FAITHFUL}" for model in MODELS for way in WAYS}
    (varied,) = [case for case in faithful() if case.name == "transformer/refactor/faithful_bfloat16"]
    assert all(text.count("torch.bfloat16") == 1 for text in varied.files.values())
    assert all(compile(text, name, "exec") for name, text in varied.files.items())


# The differences


@pytest.mark.parametrize("case", different(), ids=lambda case: case.name)
def test_every_edit_applies_and_its_lines_are_those_that_changed(case: Case) -> None:
    assert case.difference is not None
    text, before = case.files[MINE], script(case.model, case.way)
    compile(text, MINE, "exec")
    assert text != before
    assert case.files[REFERENCE] == script(case.model, "reference")
    assert case.lines
    written = text.splitlines()
    changed = {number for number, line in enumerate(written, 1) if line not in before.splitlines()}
    # What was deleted leaves no line behind that changed.
    assert changed <= set(case.lines) or "loss_sum_compensated" in case.name
    assert case.difference.effect


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("way", WAYS)
def test_each_model_has_differences_of_many_kinds(model: str, way: str) -> None:
    kinds = [made.kind.name for made in PLANTED[model][way]]
    assert len(kinds) == len(set(kinds)) >= LEAST_PER_MODEL


def test_every_kind_is_planted_both_ways() -> None:
    for way in WAYS:
        assert {made.kind.name for ways in PLANTED.values() for made in ways[way]} == set(KINDS)


def test_names_are_their_own() -> None:
    names = [case.name for case in [*faithful(), *different()]]
    assert len(names) == len(set(names))


def test_the_line_is_where_the_texts_part() -> None:
    text, line = applied("a = 1\nb = f(\n    2,\n)\n", Edit("b = f(\n    2,", "b = f(\n    3,"))
    assert (text, line) == ("a = 1\nb = f(\n    3,\n)\n", 3)


def test_a_deleted_statement_takes_its_line_with_it_and_others_are_its_place() -> None:
    made = difference("clip_missing", Edit("clip(g)", ""), "larger", also=("step()",))
    result = planted("def f():\n    back()\n    clip(g)\n    step()\n", made)
    assert (result.text, result.lines) == ("def f():\n    back()\n    step()\n", (3,))


@pytest.mark.parametrize("old", ["x", "y"])
def test_an_edit_that_does_not_fit_exactly_once_is_refused(old: str) -> None:
    with pytest.raises(EditMisfit, match="exactly once"):
        applied("x = 1\nx = 2\n", Edit(old, "z"))
    with pytest.raises(EditMisfit, match="exactly once"):
        line_of("x = 1\nx = 2\n", old)


# The arithmetic


def case_of(kind: str = "batch_norm_eps", modules: tuple[str | None, ...] = ("trunk.0.norm",)) -> Case:
    made = difference(kind, Edit("a", "b"), "some", modules)
    return Case(f"cnn/refactor/{kind}", "cnn", "refactor", {MINE: "", REFERENCE: ""}, made, (7, 9))


def pair() -> Case:
    return Case(f"cnn/port/{FAITHFUL}", "cnn", "port", {MINE: "", REFERENCE: ""})


def diagnosis(
    phase: str | None = "forward", module: str | None = "trunk.0.norm", cause: str = "eps is 1e-3, 1e-5 there", *,
    step: int = 0, line: int = 7, file: str = MINE, headline: str = "They part.",
) -> dict[str, Any]:  # fmt: skip
    found = {
        "step": step, "phase": phase, "module": module, "reference_module": "bn1", "cause": cause,
        "location": {"file": file, "line": line},
    }  # fmt: skip
    comparison = {"first_step_loss_differs": True, "first_divergence": None if phase is None else found}
    return {"verdict": {"headline": headline}, "comparison": comparison}


def figures(outcome: Outcome) -> tuple[bool, bool, bool, bool]:
    return outcome.phase, outcome.module, outcome.cause, outcome.line


def test_everything_right() -> None:
    outcome = outcome_of(case_of(), diagnosis(), 3.0)
    assert figures(outcome) == (True, True, True, True)
    assert what_is_wrong(outcome) == ""


@pytest.mark.parametrize(
    ("told", "right", "wrong"),
    [
        (diagnosis("backward"), (False, True, True, True), "another phase"),
        (diagnosis(module="trunk.1.norm"), (True, False, True, True), "another module"),
        (diagnosis(module=None), (True, False, True, True), "another module"),
        (diagnosis(cause="the outputs differ"), (True, True, False, True), "another cause"),
        (diagnosis(cause="differs", headline="Epsilon of the norm"), (True, True, True, True), ""),
        (diagnosis(line=8), (True, True, True, False), ""),
        (diagnosis(file=REFERENCE), (True, True, True, False), ""),
        (diagnosis("loss", None, "no"), (False, False, False, True), "another phase and module and cause"),
        (diagnosis(None), (False, False, False, False), "not found"),
    ],
)
def test_each_figure_is_scored_by_itself(told: dict[str, Any], right: tuple[bool, ...], wrong: str) -> None:
    outcome = outcome_of(case_of(), told, 3.0)
    assert figures(outcome) == right
    assert what_is_wrong(outcome) == wrong


def test_where_no_module_is_at_fault_none_is_right() -> None:
    case = case_of("optimizer_eps", (None,))
    assert outcome_of(case, diagnosis("update", None), 1.0).module
    assert not outcome_of(case, diagnosis("update", "head.1"), 1.0).module


@pytest.mark.parametrize(("step", "right"), [(28, False), (29, True), (30, True), (31, True), (0, False)])
def test_a_schedule_is_told_at_its_step(step: int, right: bool) -> None:
    outcome = outcome_of(case_of("schedule", (None,)), diagnosis("update", None, "another learning rate", step=step), 1.0)
    assert outcome.phase is right


def test_either_phase_will_do_where_two_are_right() -> None:
    case = case_of("clip_value", (None,))
    assert all(outcome_of(case, diagnosis(phase, None, "clipped"), 1.0).phase for phase in ("backward", "update"))


@pytest.mark.parametrize(
    ("words", "text", "said"),
    [
        (("lr",), "it is already there", False),
        (("lr",), "LR is 0.1 from step 30", True),
        (("eps",), "norm_eps differs", True),
        (("eps",), "the first steps differ", False),
        (("order", "shuffl"), "not Shuffled", True),
        ((), "anything", False),
    ],
)
def test_words_count_at_the_beginning_of_words(words: tuple[str, ...], text: str, said: bool) -> None:
    assert says_one_of(words, text) is said


def test_a_divergence_of_a_faithful_pair_is_an_alarm() -> None:
    outcomes = [outcome_of(pair(), diagnosis(None), 1.0), outcome_of(pair(), diagnosis(), 1.0)]
    assert [what_is_wrong(each) for each in outcomes] == ["", "divergence of a faithful pair"]
    assert score("all", outcomes).alarms == Share(1, 2)
    assert not score("all", outcomes).reaches_goals()
    assert score("all", outcomes[:1]).reaches_goals()


@pytest.mark.parametrize(
    ("told", "problem"),
    [(None, "not finished within 600 s"), ({"verdict": {"headline": "nothing found"}, "comparison": None}, None)],
)
def test_without_a_comparison_a_faithful_pair_is_no_success(told: dict[str, Any] | None, problem: str | None) -> None:
    outcome = outcome_of(pair(), told, 1.0, problem)
    assert what_is_wrong(outcome) == "no comparison"
    assert score("all", [outcome]).broken == 1
    assert not score("all", [outcome]).reaches_goals()


@pytest.mark.parametrize(("right", "reached"), [(19, True), (18, False)])
def test_goals(right: int, reached: bool) -> None:
    told = [diagnosis() if number < right else diagnosis("loss") for number in range(20)]
    assert score("all", [outcome_of(case_of(), each, 1.0) for each in told]).reaches_goals() is reached


# What is written, and the options


def some_outcomes() -> list[Outcome]:
    return [
        outcome_of(pair(), diagnosis(None), 2.0),
        outcome_of(case_of(), diagnosis(), 3.0),
        outcome_of(case_of("clip_value", (None,)), diagnosis(), 4.0),
    ]


def test_the_table_has_models_kinds_ways_and_all() -> None:
    lines = [line for line in tables.terminal_table(some_outcomes()).splitlines()[1:] if not line.startswith("-")]
    titles = ["cnn, port", "cnn, refactor", "eps of BatchNorm", "another limit of the gradient norm", "port", "refactor", "all"]
    assert [line.split("  ")[0] for line in lines] == titles
    assert lines[-1].split()[1:6] == ["1/2", "1/2", "1/2", "2/2", "0/1"]


def test_misses_say_what_was_expected_and_said() -> None:
    (line,) = tables.miss_lines(some_outcomes())
    assert line.startswith("another phase and module and cause: cnn/refactor/clip_value; expected backward or update, no module")
    assert "forward at step 0, trunk.0.norm, line 7 of mine.py: eps is 1e-3" in line
    assert [each.kind for each in misses(some_outcomes())] == ["clip_value"]


def test_the_documentation_is_replaced_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    tables.write_documentation(page, some_outcomes(), "3 pairs.")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# The difference benchmark")
    assert "3 pairs." in text
    assert "| phase | ≥ 95 % | 1/2 = 50.0 %" in text


def test_the_documentation_is_of_the_whole() -> None:
    from benchmarks.differences.run import main

    with pytest.raises(SystemExit, match="whole benchmark"):
        main(["--write-docs", "--only", "cnn"])


def test_only_and_framework_choose() -> None:
    assert {case.model for case in selection(parse_arguments(["--only", "lstm/"]))} == {"lstm"}
    assert {case.way for case in selection(parse_arguments(["--framework", "mindspore"]))} == {"port"}
    assert only([pair(), case_of()], [FAITHFUL]) == [pair()]
    with pytest.raises(SystemExit, match="No pair matches --only xx"):
        selection(parse_arguments(["--only", "xx"]))


def test_an_interrupted_run_is_resumed(tmp_path: Path) -> None:
    done, stopped = some_outcomes()[1], outcome_of(pair(), None, 600.0, "not finished within 600 s")
    earlier = tmp_path / "earlier.json"
    known = {outcome.name: outcome for outcome in (done, stopped)}
    # One more was chosen, and has no outcome yet.
    chosen = [pair(), case_of(), case_of("clip_value", (None,))]
    so_far(chosen, known, lambda _: {"minutes": 4.0}, tables.machine_readable, earlier)
    assert resumed(earlier) == ({done.name: done}, 240.0)
