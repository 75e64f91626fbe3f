"""Generators of numpy and of Python that a script draws samples, orders and noise from: in aligned runs they draw alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from trueline.recorder.noise import Noise
from trueline.recorder.patches import Patches
from trueline.recorder.recorder import Recorder
from trueline.recorder.watches import noting


class _Draw(NamedTuple):
    """One draw of a script: the state of its generator before, what it has drawn, and what was to be shuffled in place."""

    noise: Noise
    step: int
    state: int
    own: Any
    unshuffled: Any

    def permutation(self, count: int) -> Any:
        return self.noise.permutation(self.step, count, self.state)

    def integers(self, low: int, high: int) -> Any:
        return self._as_drawn(self.noise.integers(self.step, low, high, np.shape(self.own), self.state))

    def normal(self, mean: Any = 0.0, deviation: Any = 1.0) -> Any:
        values = self.noise.normal(self.step, np.shape(self.own), self.state)
        return None if values is None else self._as_drawn(mean + deviation * values)

    def uniform(self, low: Any = 0.0, high: Any = 1.0) -> Any:
        values = self.noise.uniform(self.step, np.shape(self.own), self.state)
        return None if values is None else self._as_drawn(low + (high - low) * values)

    def _as_drawn(self, values: Any) -> Any:
        """In the type that the generator gives."""
        if values is None or not isinstance(self.own, np.ndarray | np.generic):
            return values if values is None else type(self.own)(values)
        return np.asarray(values, self.own.dtype)[()] if np.ndim(self.own) == 0 else values.astype(self.own.dtype)


# What takes the place of a draw, by the arguments that the script gave; None where the script's own stays.
_Replacing = Callable[..., Any]


def _permutation(draw: _Draw, x: Any, axis: int = 0) -> Any:
    whole = isinstance(x, int | np.integer)
    order = draw.permutation(int(x) if whole else len(x)) if axis == 0 else None
    if order is None:
        return None
    return order.astype(draw.own.dtype) if whole else np.asarray(x)[order]


def _shuffle(draw: _Draw, x: Any, axis: int = 0) -> None:
    order = None if draw.unshuffled is None or axis != 0 else draw.permutation(len(x))
    if order is not None:
        given = draw.unshuffled
        x[:] = given[order] if isinstance(given, np.ndarray) else [given[place] for place in order]


def _choice(draw: _Draw, a: Any, _size: Any = None, replace: Any = 1, p: Any = None, **more: Any) -> Any:
    if p is not None or more.get("axis", 0) != 0 or not more.get("shuffle", True) or np.ndim(a) > 1:
        return None
    count = int(a) if isinstance(a, int | np.integer) else len(a)
    # One number is drawn the same way with and without putting it back.
    if replace or np.size(draw.own) == 1:
        rows = draw.noise.integers(draw.step, 0, count, np.shape(draw.own), draw.state)
    else:
        order = draw.permutation(count)
        rows = None if order is None else order[: np.size(draw.own)].reshape(np.shape(draw.own))
    if rows is None:
        return None
    return (rows if np.ndim(a) == 0 else np.asarray(a)[rows])[()]


def _integers(draw: _Draw, low: Any, high: Any = None, *_: Any, endpoint: bool = False, **__: Any) -> Any:
    if np.ndim(low) or np.ndim(high):
        return None
    first, last = (0, low) if high is None else (low, high)
    return draw.integers(int(first), int(last) + endpoint)


_NUMPY: dict[str, _Replacing] = {
    "shuffle": _shuffle,
    "permutation": _permutation,
    "choice": _choice,
    "integers": _integers,
    "randint": _integers,
    "normal": lambda draw, loc=0.0, scale=1.0, *_, **__: draw.normal(loc, scale),
    "standard_normal": lambda draw, *_, **__: draw.normal(),
    "randn": lambda draw, *_, **__: draw.normal(),
    "uniform": lambda draw, low=0.0, high=1.0, *_, **__: draw.uniform(low, high),
    "random": lambda draw, *_, **__: draw.uniform(),
    "random_sample": lambda draw, *_, **__: draw.uniform(),
    "rand": lambda draw, *_, **__: draw.uniform(),
}


def _sample(draw: _Draw, population: Any, k: int, *, counts: Any = None) -> Any:
    order = None if counts is not None else draw.permutation(len(population))
    return None if order is None else [population[place] for place in order[:k]]


def _one_of(draw: _Draw, seq: Any) -> Any:
    place = draw.noise.integers(draw.step, 0, len(seq), (), draw.state)
    return None if place is None else seq[int(place)]


def _randrange(draw: _Draw, start: int, stop: int | None = None, step: int = 1) -> Any:
    numbers = range(start) if stop is None else range(start, stop, step)
    return _one_of(draw, numbers)


_PYTHON: dict[str, _Replacing] = {
    "shuffle": _shuffle,
    "sample": _sample,
    "choice": _one_of,
    "randrange": _randrange,
    "randint": lambda draw, a, b: _randrange(draw, a, b + 1),
    "random": lambda draw: draw.uniform(),
    "uniform": lambda draw, a, b: draw.uniform(a, b),
    "gauss": lambda draw, mu=0.0, sigma=1.0: draw.normal(mu, sigma),
}


class _LikeItsBase(type):
    """The type of a type in whose place another one stands: objects that were made before are of it too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__mro__[1])


class GeneratorWatch:
    """Watches what draws from the generators of numpy and of Python, in runs that are aligned to others or that others are
    aligned to. A generator draws as always first: its state is what it would be."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        # What draws may draw by another of these.
        self._inside = False

    def install(self, patches: Patches) -> None:
        if self.recorder.alignment is None:
            return
        new: Any = type("Generator", (np.random.Generator,), self._methods(np.random.Generator, _state_of_generator))
        make = np.random.default_rng

        def default_rng(seed: Any = None) -> Any:
            made = make(seed)
            return made if made is seed else new(made.bit_generator)

        patches.replace(np.random, "default_rng", default_rng)
        methods = self._methods(np.random.RandomState, _state_of_old)
        patches.replace(np.random, "RandomState", _LikeItsBase("RandomState", (np.random.RandomState,), methods))
        shared: Any = np.random.shuffle
        for name, replacing in _NUMPY.items():
            if hasattr(np.random, name):
                state = partial(_state_of_old, shared.__self__)
                patches.replace(np.random, name, self._watched(getattr(np.random, name), replacing, state))
        for name, replacing in _PYTHON.items():
            patches.replace(random, name, self._watched(getattr(random, name), replacing, lambda: hash(random.getstate())))
            method = self._watched_method(getattr(random.Random, name), replacing, _state_of_python)
            patches.replace(random.Random, name, method)

    def _methods(self, kind: type, state_of: Callable[[Any], int]) -> dict[str, Any]:
        return {
            name: self._watched_method(getattr(kind, name), replacing, state_of)
            for name, replacing in _NUMPY.items()
            if hasattr(kind, name)
        }

    def _watched_method(self, original: Any, replacing: _Replacing, state_of: Callable[[Any], int]) -> Any:
        def watched(generator: Any, *args: Any, **kwargs: Any) -> Any:
            return self._drawn(original.__get__(generator), replacing, lambda: state_of(generator), args, kwargs)

        return watched

    def _watched(self, original: Any, replacing: _Replacing, state: Callable[[], int]) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            return self._drawn(original, replacing, state, args, kwargs)

        return watched

    def _drawn(self, original: Any, replacing: _Replacing, state: Callable[[], int], args: Any, kwargs: Any) -> Any:
        recorder = self.recorder
        if self._inside or recorder.busy or recorder.alignment is None or not recorder.alignment.noise.begun:
            return original(*args, **kwargs)
        self._inside = True
        try:
            before = self._about_to_draw(replacing, state, args)
            own = original(*args, **kwargs)
            found = None if before is None else self._replaced(recorder.alignment.noise, before, own, replacing, args, kwargs)
            return own if found is None else found
        finally:
            self._inside = False

    @noting
    def _about_to_draw(self, replacing: _Replacing, state: Callable[[], int], args: Any) -> tuple[int, Any]:
        """The state of the generator, and what is to be shuffled in place."""
        unshuffled = args[0].copy() if replacing is _shuffle and args and hasattr(args[0], "copy") else None
        return state(), unshuffled

    @noting
    def _replaced(self, noise: Noise, before: tuple[int, Any], own: Any, replacing: _Replacing, args: Any, kwargs: Any) -> Any:
        return replacing(_Draw(noise, self.recorder.step, before[0], own, before[1]), *args, **kwargs)


def _state_of_generator(generator: np.random.Generator) -> int:
    return hash(str(generator.bit_generator.state))


def _state_of_old(generator: np.random.RandomState) -> int:
    state: Any = generator.get_state(legacy=True)
    return hash((state[1].tobytes(), state[2:]))


def _state_of_python(generator: random.Random) -> int:
    return hash(generator.getstate())
