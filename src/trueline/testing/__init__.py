"""For whoever writes an adapter: the events that it has to record, as tests (`AdapterContract`)."""

from trueline.testing.contract import AdapterContract, Plan, TinyTraining

__all__ = ["AdapterContract", "Plan", "TinyTraining"]
