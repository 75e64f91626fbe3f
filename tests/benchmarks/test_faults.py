"""The fault benchmark: markers, mutations and their lines, the arithmetic, and one case from end to end."""

from __future__ import annotations

import ast
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults import _tables as tables
from benchmarks.faults._case import FRAMEWORKS, SCRIPT, Case, as_it_is, bases, case_of, cases, only, strangers, unmark
from benchmarks.faults._mutation import MUTATIONS, Mutation
from benchmarks.faults._running import commands
from benchmarks.faults._score import Outcome, misses, outcome_of, reaches_goals, score, what_is_wrong
from benchmarks.faults._source import LineMoved, Source
from benchmarks.faults.mutate import MOST_PER_MUTATION, mutants, plantings
from benchmarks.faults.run import parse_arguments, resumed, selection
from benchmarks.shares import Share, wilson

ROOT = Path(__file__).parents[2]


# Markers


def test_markers_go_and_no_line_moves() -> None:
    marked = "# launch: torchrun --nproc-per-node 2\nx = 1\ny = f(x)  # <- fault\n# a comment stays\nz = 2  # <- module: net.fc\n"
    unmarked = unmark(marked)
    assert unmarked.text == "\nx = 1\ny = f(x)\n# a comment stays\nz = 2\n"
    assert unmarked.lines == (3,)
    assert unmarked.module == "net.fc"
    assert unmarked.launch == ("torchrun", "--nproc-per-node", "2")


def test_launches_get_ports_of_their_own() -> None:
    launch = unmark("# launch: msrun --worker_num=2 --local_worker_num=2").launch
    case = Case(name="a", kind="healthy", origin="case", files={}, launch=launch)
    (started, _), (again, _) = commands(case), commands(case)
    assert started[3:5] == ["run", "msrun"]
    assert started[-3:] == ["--worker_num=2", "--local_worker_num=2", SCRIPT]
    (port,) = [word for word in started if word.startswith("--master_port=")]
    assert port not in again


def test_a_launch_line_counts_at_the_top_only() -> None:
    assert unmark("x = 1\n# launch: torchrun --nproc-per-node 2\n").launch == ()


def test_any_of_several_marked_lines_is_the_right_place(tmp_path: Path) -> None:
    path = tmp_path / "tr_01" / "faulty_twice.py"
    path.parent.mkdir()
    path.write_text("a = 1  # <- fault\nb = 2  # <- fault\n")
    assert case_of(path).lines == (1, 2)


def test_every_case_can_be_read_and_is_free_of_markers() -> None:
    found = cases()
    assert {case.kind for case in found} >= {"faulty", "healthy"}
    assert not [case.name for case in found if "# <-" in case.files[SCRIPT] or "# launch:" in case.files[SCRIPT]]
    assert not [case.name for case in found if case.kind == "healthy" and case.has_place]


def test_scripts_in_graph_mode_are_diagnosed_as_they_are_too() -> None:
    every = cases()
    (twice,) = [case for case in as_it_is(every) if case.name == "cg_04/faulty_ms_softmax_before_loss@graph"]
    (once,) = [case for case in every if case.name == "cg_04/faulty_ms_softmax_before_loss"]
    assert once.way == "MindSpore, graph mode"
    assert twice.words == ("--no-rerun", SCRIPT)
    assert twice.files == once.files
    assert {case.way for case in as_it_is(every)} == {"MindSpore, graph mode"}
    assert {case.way for case in every} == {"MindSpore, graph mode", "MindSpore, PyNative mode", "PyTorch"}


def test_packages_among_the_strangers_are_started_by_their_module() -> None:
    (package,) = [case for case in strangers() if case.words[0] == "-m"]
    assert package.words == ("-m", "splitapp.train")
    assert "splitapp/train.py" in package.files


def test_only_takes_items_and_parts_of_names() -> None:
    chosen = only([healthy("bases/digits"), faulty("tr_01/faulty_x")], ["tr.01"])
    assert [case.name for case in chosen] == ["tr_01/faulty_x"]
    assert len(only([healthy("bases/digits"), faulty("tr_01/faulty_x")], ["digits", "tr.01"])) == 2


# Mutations

LOOP = """\
import torch
from torch import nn
from sklearn.datasets import load_digits

digits = load_digits()
x = torch.tensor(digits.data)[:1000]
held = torch.tensor(digits.data)[1000:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.drop = nn.Dropout(0.1)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        return self.fc2(x)


model = Net()
optimizer = torch.optim.Adam(
    model.parameters(),
    lr=0.01,
)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    model.train()
    for inputs, targets in torch.utils.data.DataLoader(x, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        (loss / 4).backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        print(criterion(model(held), targets))
"""


def line_with(text: str, part: str) -> int:
    (number,) = [number for number, line in enumerate(text.splitlines(), 1) if part in line]
    return number


def planted(name: str, text: str = LOOP) -> tuple[tuple[int, ...], str]:
    (mutation,) = [each for each in MUTATIONS if each.name == name]
    (first, *_) = plantings(mutation, text)
    return first[0].lines, first[1]


@pytest.mark.parametrize(
    ("name", "line", "written"),
    [
        ("zero_grad_removed", 34, "        pass\n        loss ="),
        ("zero_grad_before_step", 35, "        optimizer.zero_grad(); optimizer.step()\n"),
        ("zero_grad_per_epoch", 30, "    model.train(); optimizer.zero_grad()\n"),
        ("step_removed", 34, "backward()\n        pass\n    scheduler"),
        ("scheduler_per_batch", 35, "optimizer.step(); scheduler.step()\n    pass\n"),
        ("optimizer_on_copy", 23, "    copy.deepcopy(model).parameters(),\n"),
        ("optimizer_on_part", 23, "    list(model.parameters())[-2:],\n"),
        ("rate_too_high", 23, "    lr=10,\n"),
        ("rate_too_low", 23, "    lr=1e-05,\n"),
        ("accumulation_not_divided", 34, "        loss.backward()\n"),
        ("softmax_given", 33, "criterion(torch.softmax(model(inputs), dim=-1), targets)\n        (loss"),
        ("softmax_returned", 19, "return torch.softmax(self.fc2(x), dim=-1)\n"),
        ("nll_of_scores", 33, "criterion = nn.NLLLoss()\n"),
        ("zero_weights", 22, "model = Net(); [torch.nn.init.zeros_(p) for p in model.parameters()]\n"),
        ("head_frozen", 15, "self.fc2 = nn.Linear(32, 10).requires_grad_(False)\n"),
        ("detached", 18, "x = torch.relu(self.fc1(x)).detach()\n"),
        ("activation_removed", 18, "        x = self.fc1(x)\n"),
        ("eval_forgotten", 39, "    pass\n    with torch.no_grad"),
        ("train_forgotten", 37, "range(3):\n    pass\n"),
        ("shuffle_removed", 31, "DataLoader(x, shuffle=False)"),
    ],
)
def test_a_fault_is_planted_on_the_line_that_is_expected(name: str, line: int, written: str) -> None:
    lines, text = planted(name)
    assert line in lines
    assert written in text
    assert text.count("\n") == LOOP.count("\n")


def test_a_result_is_dropped_on_a_line_of_its_own() -> None:
    lines, text = planted("activation_dropped")
    assert lines == (19,)
    assert text.splitlines()[17:20] == ["        x = self.fc1(x)", "        torch.relu(x)", "        return self.fc2(x)"]


def test_an_import_that_the_fault_needs_goes_on_the_line_of_the_first_import() -> None:
    assert planted("optimizer_on_copy")[1].startswith("import torch; import copy\n")


def test_corrupted_labels_are_other_labels_at_about_the_share_wanted() -> None:
    _, text = planted("labels_wrong_10")
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    start, loading = "import numpy as np\nfrom sklearn.datasets import load_digits\n", "digits = load_digits()"
    exec(start + loading, before)  # noqa: S102 - the line under test
    exec(start + next(line for line in text.splitlines() if line.startswith(loading)), after)  # noqa: S102
    wrong = before["digits"].target != after["digits"].target
    assert 0.07 < wrong.mean() < 0.13
    assert set(after["digits"].target) == set(range(10))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("zero_grad_removed", LOOP.replace("optimizer.zero_grad()", "model.zero_grad()")),
        ("constant_weights", LOOP),  # dropout breaks the symmetry
        ("layers_multiplied", LOOP),
        ("unscale_removed", LOOP),
        ("eval_forgotten", LOOP.replace("nn.Dropout(0.1)", "nn.Identity()")),
        ("scheduler_per_batch", LOOP.replace("    scheduler.step()\n", "        scheduler.step()\n")),
    ],
)
def test_a_mutation_that_does_not_apply_gives_nothing(name: str, text: str) -> None:
    (mutation,) = [each for each in MUTATIONS if each.name == name]
    assert plantings(mutation, text) == []


def test_an_edit_that_moves_lines_is_refused() -> None:
    source = Source("x = f(\n    1,\n)\ny = 2\n")
    first = source.tree.body[0]
    assert isinstance(first, ast.Assign)
    with pytest.raises(LineMoved):
        source.replace(first.value, "g()")
    assert source.edited([source.remove(first)]) == "pass\n\n\ny = 2\n"


def test_edits_count_in_bytes_so_other_alphabets_do_not_shift_them() -> None:
    source = Source('name = "größe"; x = f(1)\n')
    (call,) = source.calls("f")
    assert source.edited([source.replace(call, "g(2)")]) == 'name = "größe"; x = g(2)\n'


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_mutation_applies_to_a_base(mutation: Mutation) -> None:
    found = [place for base in bases() for place in plantings(mutation, base.files[SCRIPT])]
    assert found
    assert all(0 < line <= text.count("\n") for planting, text in found for line in planting.lines)


def test_the_seed_decides_which_mutants_are_taken() -> None:
    scripts = bases()
    taken = mutants(scripts, 3)
    assert taken == mutants(scripts, 3)
    assert {case.name for case in taken} != {case.name for case in mutants(scripts, 4)}
    assert max(sum(case.note == each.title for case in taken) for each in MUTATIONS) <= MOST_PER_MUTATION


def test_names_of_mutants_are_their_own() -> None:
    names = [case.name for case in mutants(bases())]
    assert len(names) == len(set(names))


# The arithmetic


def healthy(name: str = "bases/x") -> Case:
    return Case(name, "healthy", "base", {SCRIPT: ""})


def faulty(name: str = "tr_01/faulty_x", lines: tuple[int, ...] = (7,), module: str | None = None) -> Case:
    return Case(name, "faulty", "case", {SCRIPT: ""}, item="tr.01", lines=lines, module=module)


def diagnosis(cause: str | None, *found: str, line: int = 7, module: str | None = None) -> dict[str, Any]:
    place = {"file": SCRIPT, "line": line, "module": module, "function": None, "source": None}
    checklist = [
        {"id": id_, "conclusion": "problem_found" if id_ in found else "no_problem", "summary": "so", "location": place}
        for id_ in ("cg.04", "tr.01", "tr.05")
    ]
    return {"verdict": {"cause": cause}, "checklist": checklist}


def test_found_named_and_placed() -> None:
    outcome = outcome_of(faulty(), diagnosis("tr.01", "tr.01", "tr.05"), 2.0, None)
    assert (outcome.recalled, outcome.caused, outcome.placed) == (True, True, True)
    assert what_is_wrong(outcome) == ""


def test_found_as_a_consequence_of_another_is_recall_without_cause() -> None:
    outcome = outcome_of(faulty(), diagnosis("cg.04", "tr.01", "cg.04"), 2.0, None)
    assert (outcome.recalled, outcome.caused, outcome.placed) == (True, False, True)
    assert what_is_wrong(outcome) == "another cause"


def test_not_found_is_not_placed_either() -> None:
    outcome = outcome_of(faulty(), diagnosis("cg.04", "cg.04"), 2.0, None)
    assert (outcome.recalled, outcome.caused, outcome.placed) == (False, False, False)
    assert "tr.01 no_problem" in outcome.said
    assert "cg.04 problem_found" in outcome.said


def test_the_place_is_the_line_or_else_the_module() -> None:
    assert outcome_of(faulty(), diagnosis("tr.01", "tr.01", line=8), 2.0, None).placed is False
    assert outcome_of(faulty(lines=(8, 9)), diagnosis("tr.01", "tr.01", line=9), 2.0, None).placed is True
    in_module = faulty(lines=(), module="net.fc")
    assert outcome_of(in_module, diagnosis("tr.01", "tr.01", module="net.fc"), 2.0, None).placed is True
    assert outcome_of(in_module, diagnosis("tr.01", "tr.01", module="net"), 2.0, None).placed is False
    assert outcome_of(faulty(lines=()), diagnosis("tr.01", "tr.01"), 2.0, None).placed is None


def test_any_finding_on_a_healthy_run_is_one_false_alarm() -> None:
    outcomes = [
        outcome_of(healthy(), diagnosis("tr.05", "tr.05", "cg.04"), 2.0, None),
        outcome_of(healthy(), diagnosis(None), 2.0, None),
    ]
    assert score("all", outcomes).alarms == 1
    assert [what_is_wrong(each) for each in outcomes] == ["false alarm", ""]


def test_a_script_without_diagnosis_is_a_miss_and_no_false_alarm() -> None:
    outcome = outcome_of(faulty(), None, 2.0, "no diagnosis (exit code 2)")
    assert outcome.placed is False
    assert misses([outcome]) == [outcome]
    assert score("all", [outcome]).broken == 1


def test_a_check_that_failed_leaves_the_diagnosis_incomplete() -> None:
    failing = diagnosis(None)
    failing["checklist"][0]["conclusion"] = "error"
    outcome = outcome_of(healthy(), failing, 2.0, None)
    assert outcome.problem == "cg.04 failed: so"
    assert not score("all", [outcome]).reaches_goals()


def test_a_healthy_script_that_fails_proves_nothing() -> None:
    failed = diagnosis(None) | {"recording": {"status": "failed", "error": "NameError: x", "recorder_error": None}}
    assert outcome_of(healthy(), failed, 2.0, None).problem == "the script itself ended as failed: NameError: x"
    assert outcome_of(faulty(), failed, 2.0, None).problem is None


def test_reported_scripts_count_as_neither() -> None:
    case = Case("api_02/reported_x", "reported", "case", {SCRIPT: ""}, item="tr.01", lines=(7,))
    whole = score("all", [outcome_of(case, diagnosis("tr.01", "tr.01"), 2.0, None)])
    assert (whole.recall.total, whole.healthy, whole.reported) == (0, 0, Share(1, 1))


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"), [(19, 20, 0.764, 0.991), (0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (0, 0, 0.0, 1.0)]
)
def test_wilson_intervals(hits: int, total: int, low: float, high: float) -> None:
    assert wilson(hits, total) == pytest.approx((low, high), abs=5e-4)


def test_shares_as_text() -> None:
    assert Share(19, 20).full_text() == "19/20 = 95.0 % (76.4 %–99.1 %)"
    assert Share(0, 0).text() == "–"
    assert math.isnan(Share(0, 0).value)


@pytest.mark.parametrize(("recalled", "reached"), [(19, True), (18, False)])
def test_goals(recalled: int, reached: bool) -> None:
    right, missed = diagnosis("tr.01", "tr.01"), diagnosis(None)
    outcomes = [outcome_of(faulty(), right if number < recalled else missed, 1.0, None) for number in range(20)]
    assert score("all", outcomes).reaches_goals() is reached


# What is written


def some_outcomes() -> list[Outcome]:
    return [
        outcome_of(faulty(), diagnosis("tr.01", "tr.01"), 2.0, None),
        outcome_of(faulty("tr_01/faulty_y"), diagnosis(None), 3.0, None),
        outcome_of(healthy(), diagnosis("cg.04", "cg.04"), 4.0, None),
    ]


def test_the_tables_name_items_origins_and_misses() -> None:
    table = tables.terminal_table(some_outcomes())
    assert [line.split()[0] for line in table.splitlines() if line[0] not in " -"] == ["tr.01", "written", "base", "all"]
    told = "\n".join(tables.miss_lines(some_outcomes()))
    assert "not found: tr_01/faulty_y; expected tr.01 at line 7" in told
    assert "false alarm: bases/x; cause named: cg.04" in told


def test_graph_mode_as_it_is_has_goals_of_its_own() -> None:
    (told, *_), way = some_outcomes(), "MindSpore, graph mode"
    missed = replace(told, recalled=False, caused=False, placed=False, way=way, origin="graph")
    one_of_ten = [told, missed, *[replace(missed, recalled=True)] * 9]
    assert reaches_goals(one_of_ten)
    assert not reaches_goals([*one_of_ten, missed])
    assert "graph mode as it is: recall" in {row[0] for row in tables.totals(one_of_ten)}
    assert tables.terminal_table(one_of_ten).splitlines()[-1].split()[:7] == "MindSpore, graph mode as it is 9/10".split()


def test_the_documentation_is_replaced_between_its_marks_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    begin, end = tables.BEGIN.format("pytorch"), tables.END.format("pytorch")
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    tables.write_documentation(page, "pytorch", some_outcomes(), "3 scripts.")
    text = page.read_text()
    assert text.startswith(f"before\n{begin}\n\n3 scripts.")
    assert text.endswith(f"{end}\nafter\n")
    assert "old" not in text
    assert "| recall | ≥ 95 % | 1/2 = 50.0 %" in text


def test_the_page_of_this_repository_has_the_marks() -> None:
    text = (ROOT / "docs" / "fault-benchmark.md").read_text()
    for framework in FRAMEWORKS:
        assert text.count(tables.BEGIN.format(framework)) == text.count(tables.END.format(framework)) == 1


def test_quick_takes_one_faulty_and_one_healthy_script_per_item() -> None:
    chosen = selection(parse_arguments(["--quick", "--only", "tr.01", "--mutants", "0"]))
    assert sorted(case.kind for case in chosen) == ["faulty", "healthy"]


def test_nothing_to_run_is_said() -> None:
    with pytest.raises(SystemExit, match="No script matches --only xx"):
        selection(parse_arguments(["--only", "xx.99"]))


def test_one_case_from_end_to_end(tmp_path: Path) -> None:
    target, kept = tmp_path / "results.json", tmp_path / "kept"
    command = [sys.executable, str(ROOT / "benchmarks/faults/run.py"), "--only", "tr_01/faulty_never_cleared", "--jobs", "1"]
    finished = subprocess.run(
        [*command, "--json", str(target), "--keep", str(kept)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    (outcome,) = json.loads(target.read_text())["outcomes"]
    assert (outcome["recalled"], outcome["caused"], outcome["placed"]) == (True, True, True)
    assert "recall: 1/1" in finished.stdout
    script = (kept / "tr_01-faulty_never_cleared" / SCRIPT).read_text()
    assert "# <-" not in script


def test_an_interrupted_run_is_resumed(tmp_path: Path) -> None:
    done = Outcome("tr_01/faulty_one", "faulty", "case", "tr.01", 3.0, found=["tr.01"], cause="tr.01", recalled=True, caused=True)
    stopped = Outcome("tr_01/faulty_two", "faulty", "case", "tr.01", 240.0, problem="stopped after 240 s")
    earlier = tmp_path / "earlier.json"
    earlier.write_text(tables.machine_readable([done, stopped], {"minutes": 4.0}))
    assert resumed(earlier) == ({"tr_01/faulty_one": done}, 240.0)
    assert resumed(None) == ({}, 0.0)
