"""The nouns of Trueline. Nothing in here reads, writes or imports a framework."""

from trueline.model.finding import Conclusion, Diagnosis, Evidence, Finding, NonFinite, Verdict
from trueline.model.location import Location
from trueline.model.run import (
    Batch,
    Event,
    HyperParameter,
    Loader,
    LossCall,
    Module,
    Op,
    Optimizer,
    OptimizerParameter,
    Parameter,
    RootCall,
    RunInfo,
    Snapshot,
    Step,
    TensorStat,
)

__all__ = [
    "Batch",
    "Conclusion",
    "Diagnosis",
    "Event",
    "Evidence",
    "Finding",
    "HyperParameter",
    "Loader",
    "Location",
    "LossCall",
    "Module",
    "NonFinite",
    "Op",
    "Optimizer",
    "OptimizerParameter",
    "Parameter",
    "RootCall",
    "RunInfo",
    "Snapshot",
    "Step",
    "TensorStat",
    "Verdict",
]
