"""Random numbers that a script draws while it trains: in aligned runs the same ones on both sides (recorder/noise.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import RandomSampler

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.tensors import is_plain
from trueline.recorder.noise import Noise
from trueline.recorder.patches import Patches

# What takes the place of the tensor that was drawn, by the arguments that the script gave.
_Replacing = Callable[[Noise, int, int, Tensor, tuple[Any, ...], dict[str, Any]], NDArray[Any] | None]


class NoiseWatch(Watch):
    """Watches what draws noise, whole numbers and orders, in runs that are aligned to others or that others are aligned to."""

    def install(self, patches: Patches) -> None:
        if self.recorder.alignment is None:
            return
        for name, replacing in _FUNCTIONS.items():
            patches.replace(torch, name, self._watched(getattr(torch, name), replacing))
        for name, replacing in _METHODS.items():
            patches.replace(Tensor, name, self._watched(getattr(Tensor, name), replacing))
        patches.replace(RandomSampler, "__iter__", _without_last_order(RandomSampler.__iter__))

    def _watched(self, original: Any, replacing: _Replacing) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            alignment = self.recorder.alignment
            if alignment is None or not alignment.noise.begun or self.recorder.busy:
                return original(*args, **kwargs)
            generator = kwargs.get("generator") or torch.default_generator
            state = hash(generator.get_state().numpy().tobytes())
            drawn = original(*args, **kwargs)
            self._replace(drawn, replacing, alignment.noise, state, args, kwargs)
            return drawn

        return watched

    @guarded
    def _replace(self, drawn: Any, replacing: _Replacing, noise: Noise, state: int, args: Any, kwargs: Any) -> None:
        if not isinstance(drawn, Tensor) or not is_plain(drawn):
            return
        values = replacing(noise, self.recorder.step, state, drawn, args, kwargs)
        if values is not None:
            with torch.no_grad():
                drawn.copy_(torch.from_numpy(values))


def _normal(noise: Noise, step: int, state: int, drawn: Tensor, args: Any, kwargs: Any) -> NDArray[Any] | None:
    return noise.normal(step, tuple(drawn.shape), state)


def _uniform(noise: Noise, step: int, state: int, drawn: Tensor, args: Any, kwargs: Any) -> NDArray[Any] | None:
    return noise.uniform(step, tuple(drawn.shape), state)


def _normal_in_place(noise: Noise, step: int, state: int, drawn: Tensor, args: Any, kwargs: Any) -> NDArray[Any] | None:
    given = dict(zip(("tensor", "mean", "std"), args, strict=False)) | kwargs
    values = noise.normal(step, tuple(drawn.shape), state)
    return None if values is None else given.get("mean", 0.0) + given.get("std", 1.0) * values


def _uniform_in_place(noise: Noise, step: int, state: int, drawn: Tensor, args: Any, kwargs: Any) -> NDArray[Any] | None:
    given = dict(zip(("tensor", "from", "to"), args, strict=False)) | kwargs
    low, high = given.get("from", 0.0), given.get("to", 1.0)
    values = noise.uniform(step, tuple(drawn.shape), state)
    return None if values is None else low + (high - low) * values


def _whole_numbers(noise: Noise, step: int, state: int, drawn: Tensor, args: Any, kwargs: Any) -> NDArray[Any] | None:
    """`randint(high, size)` or `randint(low, high, size)`."""
    bounds = [int(bound) for bound in args[:2] if isinstance(bound, int)]
    high = kwargs["high"] if "high" in kwargs else bounds[-1]
    low = kwargs.get("low", bounds[0] if len(bounds) + ("high" in kwargs) > 1 else 0)
    return noise.integers(step, int(low), int(high), tuple(drawn.shape), state)


def _order(noise: Noise, step: int, state: int, drawn: Tensor, args: Any, kwargs: Any) -> NDArray[Any] | None:
    return noise.permutation(step, len(drawn), state)


_FUNCTIONS: dict[str, _Replacing] = {
    "randn": _normal, "randn_like": _normal, "rand": _uniform, "rand_like": _uniform, "randint": _whole_numbers,
    "randperm": _order,
}  # fmt: skip
_METHODS: dict[str, _Replacing] = {"normal_": _normal_in_place, "uniform_": _uniform_in_place}


def _without_last_order(original: Any) -> Any:
    """Samplers draw an order once more when all samples are out, of which they take nothing: scripts that draw it do not."""

    def __iter__(sampler: RandomSampler) -> Iterator[int]:  # noqa: N807 - it replaces that method
        return islice(original(sampler), len(sampler))

    return __iter__
