"""What is put into the user's graphs to show their tensors: read by MindSpore's compiler, which understands only some of Python.

A tap hands its tensor on unchanged and shows it to a Python function, by an operator that every kind of compiled graph can run.
The number that the function gives back goes with the tensor, and comes back with the gradient: so a gradient is known by the
call that it belongs to. `Depend` is all that is put in the tensor's way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore import Tensor, nn, ops

# How many tensors of an output are shown, as in PyNative mode.
MOST_SHOWN = 4
# A mark is even; one more tells the Python side that numpy has no such type, and float32 is shown.
MARKS_APART = 2

_SHOWN = (ms.float16, ms.float32, ms.float64)
_SHOWN_AS_FLOAT = ms.bfloat16
_map = ops.HyperMap()


def _shown_by(function: Callable[..., Any]) -> Any:
    """An operator that calls a function with two arrays, and gives the one number that it returns."""
    return ops.Custom(function, lambda *_: [1], ms.int32, "pyfunc")


class _Carrier(nn.Cell):  # type: ignore[misc]
    """Hands on a tensor together with the number of its call; shows the gradient with that number."""

    def __init__(self, show_gradient: Callable[..., Any]) -> None:
        super().__init__(auto_prefix=False)
        self.show = _shown_by(show_gradient)

    def construct(self, value: Any, number: Any) -> Any:
        return ops.depend(value, number)

    def bprop(self, value: Any, number: Any, out: Any, dout: Any) -> Any:
        shown = dout
        if dout.dtype == _SHOWN_AS_FLOAT:
            shown = ops.cast(dout, ms.float32)
        return ops.depend(dout, self.show(shown, number)), ops.zeros_like(number)


class Tap(nn.Cell):  # type: ignore[misc]
    """Shows a tensor (`show`: array, mark → number) and the gradient that arrives at it (`show_gradient`: array, number)."""

    def __init__(self, show: Callable[..., Any], show_gradient: Callable[..., Any]) -> None:
        super().__init__(auto_prefix=False)
        self.show = _shown_by(show)
        self.carry = _Carrier(show_gradient)

    def construct(self, value: Any, mark: Any) -> Any:
        shown = ops.stop_gradient(value)
        if value.dtype == _SHOWN_AS_FLOAT:
            return self.carry(value, self.show(ops.cast(shown, ms.float32), mark + 1))
        return self.carry(value, self.show(shown, mark))


def output_hook(tap: Tap, first_mark: int) -> Any:
    """A forward hook that puts a tap behind each of the first tensors that a cell gives."""
    marks = tuple(Tensor([first_mark + place * MARKS_APART], ms.int32) for place in range(MOST_SHOWN))

    def tapped(value: Any, place: int) -> Any:
        if not isinstance(value, Tensor) or place >= MOST_SHOWN:
            return value
        if value.ndim == 0 and value.dtype != ms.float32:
            # The operator shows single numbers without their type.
            return value
        if value.dtype in _SHOWN or value.dtype == _SHOWN_AS_FLOAT:
            return tap(value, marks[place])
        return value

    def hook(cell: Any, inputs: Any, output: Any) -> Any:
        if not isinstance(output, tuple):
            return tapped(output, 0)
        whole: Any = ()
        place = 0
        for part in output:
            if isinstance(part, tuple):
                inner: Any = ()
                for one in part:
                    inner = (*inner, tapped(one, place))
                    if isinstance(one, Tensor):
                        place = place + 1
                whole = (*whole, inner)
            else:
                whole = (*whole, tapped(part, place))
                if isinstance(part, Tensor):
                    place = place + 1
        return whole

    return hook


def gradients_hook(show_gradient: Callable[..., Any], first_mark: int, count: int) -> Any:
    """A hook ahead of an optimizer that shows the gradients it is called with (array, mark)."""
    show = _shown_by(show_gradient)
    marks = tuple(Tensor([first_mark + place * MARKS_APART], ms.int32) for place in range(count))

    def shown(gradient: Any, mark: Any) -> Any:
        if isinstance(gradient, Tensor):
            if gradient.dtype in _SHOWN:
                return ops.depend(gradient, show(gradient, mark))
            if gradient.dtype == _SHOWN_AS_FLOAT:
                return ops.depend(gradient, show(ops.cast(gradient, ms.float32), mark + 1))
        return gradient

    def hook(cell: Any, inputs: Any) -> Any:
        return (_map(shown, inputs[0], marks), *inputs[1:])

    return hook
