"""From the findings of all checks to one cause."""

from trueline.diagnose.conclude import diagnose, diagnose_nothing, with_comparison
from trueline.diagnose.rank import cause_of, mark_consequences

__all__ = ["cause_of", "diagnose", "diagnose_nothing", "mark_consequences", "with_comparison"]
