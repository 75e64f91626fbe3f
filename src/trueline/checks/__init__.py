"""The checklist: one file or folder per item. Checks read a recorded run and return findings; they never render anything."""

from trueline.checks.base import Check, check_of_id, registry
from trueline.checks.runner import look_again, rests_on_failed, run_checks

__all__ = ["Check", "check_of_id", "look_again", "registry", "rests_on_failed", "run_checks"]
