"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes says more of the machine's other work than of the code.
settings.register_profile("trueline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trueline")
