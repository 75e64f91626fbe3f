"""Compiled steps of MindSpore: graph mode, and functions under `ms.jit`."""
