"""Where the first NaN or infinite value of a run is placed."""

from __future__ import annotations

import math
from pathlib import Path

from builders import Row, build_run, stat_row

from trueline.model import NonFinite
from trueline.store import Run
from trueline.views.nonfinite import first_nonfinite


def _first(directory: Path) -> NonFinite | None:
    run = Run(directory)
    try:
        return first_nonfinite(run)
    finally:
        run.close()


def _step(number: int, grad_norm: float | None) -> Row:
    """A step with a finite loss whose gradient norm is not finite (NULL: NaN)."""
    return (number, number * 10 + 9, 1, 2.0, grad_norm, 0, 0.01, 0.0, 1, 1, None, 4, 0)


def test_finite_run_has_none(tmp_path: Path) -> None:
    assert _first(build_run(tmp_path / "run", [2.3, 2.2])) is None


def test_module_whose_output_went_wrong_first(tmp_path: Path) -> None:
    rows = {"tensor_stat": [stat_row(2, "output", 2), stat_row(2, "output", 4, nan=3), stat_row(2, "output", 1, nan=3)]}
    found = _first(build_run(tmp_path / "run", [2.3, 2.2, math.nan], rows=rows))
    assert found is not None
    assert (found.step, found.phase, found.module) == (2, "forward", "fc2")
    assert str(found.location) == "train.py:12"


def test_mask_of_infinities_is_not_the_origin(tmp_path: Path) -> None:
    masked = [stat_row(step, "output", 2, inf=5) for step in (0, 1)]
    rows = {"tensor_stat": [*masked, stat_row(1, "output", 4, nan=1)]}
    found = _first(build_run(tmp_path / "run", [2.3, math.nan], rows=rows))
    assert found is not None
    assert found.module == "fc2"


def test_loss_call_when_all_modules_are_finite(tmp_path: Path) -> None:
    rows = {
        "tensor_stat": [stat_row(1, "output", 4)],
        "loss_call": [(13, 1, "cross_entropy", 3, 1, None, "{}", "{}", "{}")],
    }
    found = _first(build_run(tmp_path / "run", [2.3, math.nan], rows=rows))
    assert found is not None
    assert (found.phase, found.module, found.operation) == ("forward", None, "cross_entropy")


def test_line_of_the_backward_call_when_nothing_was_sampled(tmp_path: Path) -> None:
    found = _first(build_run(tmp_path / "run", [2.3, math.inf]))
    assert found is not None
    assert (found.step, str(found.location)) == (1, "train.py:42")


def test_gradients_go_wrong_in_the_backward_pass(tmp_path: Path) -> None:
    rows = {"step": [_step(1, None)], "tensor_stat": [stat_row(1, "gradient", 1, nan=4), stat_row(1, "gradient", 3, nan=4)]}
    found = _first(build_run(tmp_path / "run", [2.3, 2.2], rows=rows))
    assert found is not None
    assert (found.step, found.phase, found.module) == (1, "backward", "fc2")


def test_overflow_that_a_scaler_guards_is_passed_over(tmp_path: Path) -> None:
    rows = {"step": [_step(0, math.inf)], "event": [(7, 0, "scaler_step", 1, None, 65536.0, "{}")]}
    assert _first(build_run(tmp_path / "run", [2.3, 2.2], rows=rows)) is None


def test_weights_spoilt_by_the_update_before(tmp_path: Path) -> None:
    rows = {"tensor_stat": [stat_row(2, "parameter", 3, nan=1)], "event": [(18, 1, "optimizer_step", 1, 6, None, "{}")]}
    found = _first(build_run(tmp_path / "run", [2.3, 2.2, math.nan], rows=rows))
    assert found is not None
    assert (found.step, found.phase, found.module, str(found.location)) == (1, "update", "fc2", "train.py:43")


def test_line_that_computes_the_loss_when_it_was_traced_before(tmp_path: Path) -> None:
    rows = {
        "location": [(9, "train.py", 41, "<module>", "loss = (net(x) - y).square().mean()")],
        "op": [(4, 0, "mean", None, 9, "[]", "[]", "{}", 1)],
        "event": [(5, 0, "backward", None, 3, 2.3, '{"of": "o4"}')],
    }
    found = _first(build_run(tmp_path / "run", [2.3, math.inf], rows=rows))
    assert found is not None
    assert (found.step, found.phase, str(found.location)) == (1, "forward", "train.py:41")
