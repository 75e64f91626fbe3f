"""Running a script again, to learn from what is different then."""

from trueline.rerun.closer_look import look_closer, why_no_closer_look
from trueline.rerun.first_steps import STEPS, rerun_first_steps, why_no_rerun
from trueline.rerun.sandbox.start import Rerun, Way
from trueline.rerun.terms import Terms

__all__ = [
    "STEPS",
    "Rerun",
    "Terms",
    "Way",
    "look_closer",
    "rerun_first_steps",
    "why_no_closer_look",
    "why_no_rerun",
]
