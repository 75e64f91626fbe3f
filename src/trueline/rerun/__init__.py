"""Running a script again, to learn from what is different then."""

from trueline.rerun.first_steps import STEPS, rerun_first_steps, why_no_rerun

__all__ = ["STEPS", "rerun_first_steps", "why_no_rerun"]
