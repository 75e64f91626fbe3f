"""MindSpore scripts of the fault benchmark, from end to end: one of each kind here, all of them by `make bench-faults`."""

from __future__ import annotations

import pytest

from benchmarks.faults._case import Case, as_it_is, cases
from benchmarks.faults._running import diagnose
from benchmarks.faults._score import what_is_wrong

LONGEST = 240.0
CHOSEN = """
    api_01/faulty_ms_conv_defaults cg_03/faulty_ms_skip_never_added cg_04/healthy_ms_distillation
    mp_02/healthy_ms_fixed_scale_model mp_03/faulty_ms_clip_before_unscale tr_01/faulty_ms_accumulator_not_cleared
    tr_07/faulty_ms_framework_left_out cg_02/faulty_ms_frozen_head@graph
""".split()
KNOWN = {case.name: case for case in [*cases(), *as_it_is(cases())]}


@pytest.mark.parametrize("case", [KNOWN[name] for name in CHOSEN], ids=lambda case: case.name)
def test_diagnosis_is_as_expected(case: Case) -> None:
    outcome = diagnose(case, LONGEST)
    assert not what_is_wrong(outcome), outcome.said
    assert outcome.problem is None
