"""The only place that imports a framework. `FRAMEWORKS` names the adapters by the package that brings them in."""

from trueline.adapters.base import FRAMEWORKS, Adapter, adapter_for, default_layer

__all__ = ["FRAMEWORKS", "Adapter", "adapter_for", "default_layer"]
