"""From events to rows: call sites, sampling under a budget, sketches, sample fingerprints. Knows no framework."""

from trueline.recorder.recorder import Recorder, to_json

__all__ = ["Recorder", "to_json"]
