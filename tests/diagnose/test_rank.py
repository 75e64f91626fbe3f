"""Which of several findings becomes the cause."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trueline.checks import Check
from trueline.diagnose import cause_of, mark_consequences
from trueline.model import Conclusion, Finding


def _check(check_id: str, rank: int = 50, consequences: tuple[str, ...] = ()) -> Check:
    return Check(check_id, check_id, "", lambda _run: _problem(check_id), consequences, rank)


def _problem(check_id: str, confidence: float = 0.9, **values: Any) -> Finding:
    return Finding(check_id, check_id, values.pop("conclusion", Conclusion.PROBLEM_FOUND), "It is wrong.", confidence, **values)


def _cause(findings: list[Finding], *checks: Check) -> str | None:
    known = {check.id: check for check in checks}
    cause = cause_of(mark_consequences(findings, known), known)
    return None if cause is None else cause.id


def test_structural_fault_comes_before_the_shape_of_a_curve() -> None:
    assert _cause([_problem("hp.01", 0.99), _problem("cg.04", 0.8)], _check("hp.01", 60), _check("cg.04", 20)) == "cg.04"


def test_among_equal_ranks_the_surer_finding_wins() -> None:
    assert _cause([_problem("cg.02", 0.7), _problem("cg.04", 0.9)], _check("cg.02"), _check("cg.04")) == "cg.04"


def test_consequence_is_marked_and_never_the_cause() -> None:
    known = {"tr.02": _check("tr.02", 40, ("cg.02",)), "cg.02": _check("cg.02", 10)}
    marked = mark_consequences([_problem("cg.02"), _problem("tr.02")], known)
    assert [finding.consequence_of for finding in marked] == ["tr.02", None]
    assert cause_of(marked, known) == marked[1]


def test_item_without_a_problem_explains_nothing() -> None:
    healthy = _problem("tr.02", conclusion=Conclusion.NO_PROBLEM)
    assert _cause([_problem("cg.02"), healthy], _check("tr.02", 1, ("cg.02",)), _check("cg.02")) == "cg.02"


def test_item_without_a_problem_is_no_consequence() -> None:
    known = {"tr.02": _check("tr.02", 1, ("cg.02",))}
    marked = mark_consequences([_problem("tr.02"), _problem("cg.02", conclusion=Conclusion.NO_PROBLEM)], known)
    assert marked[1].consequence_of is None


def test_two_that_name_each_other_leave_the_one_that_ranks_first() -> None:
    assert _cause([_problem("a.01"), _problem("b.01")], _check("a.01", 20, ("b.01",)), _check("b.01", 10, ("a.01",))) == "b.01"


def test_no_problem_no_cause() -> None:
    assert _cause([_problem("a.01", conclusion=Conclusion.ERROR)], _check("a.01")) is None
    assert _cause([]) is None


_ids = st.sampled_from(["a.01", "b.01", "c.01", "d.01", "e.01"])


@given(
    st.dictionaries(_ids, st.tuples(st.integers(0, 3), st.frozensets(_ids)), min_size=1),
    st.dictionaries(_ids, st.floats(0, 1), min_size=1),
)
def test_there_is_always_one_cause_among_problems(declared: dict[str, Any], problems: dict[str, float]) -> None:
    known = {key: _check(key, rank, tuple(sorted(consequences))) for key, (rank, consequences) in declared.items()}
    marked = mark_consequences([_problem(key, confidence) for key, confidence in problems.items()], known)
    cause = cause_of(marked, known)
    assert cause is not None
    assert cause.consequence_of is None
    assert all(finding.consequence_of in {None, *problems} for finding in marked)
