"""Derivatives that a script takes itself (`autograd.grad` with a graph of its own): of a scaled tensor, and what becomes of them.

The traced operations are followed in both directions: back from the tensor that was derived to a multiplication with the loss
scale, and on from the derivatives to the loss, past everything that could take the scale out of them again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from typing import Any

import msgspec

from trueline.model import Event, Op
from trueline.store import Run
from trueline.views.dataflow import NO_DERIVATIVE, SHAPE_ONLY, ZERO_DERIVATIVE, Trace, is_in, plain, shape_of
from trueline.views.source import text_of_file

_TIMES = frozenset("mul multiply foreach_mul".split())
_OVER = frozenset("div divide true_divide truediv foreach_div".split())
_LINEAR = SHAPE_ONLY | _TIMES | _OVER | frozenset("add sub subtract neg negative sum mean stack cat requires_grad".split())
_OUTER = SHAPE_ONLY | frozenset("sum mean requires_grad".split())
_FILLS = frozenset("full full_like tensor as_tensor scalar_tensor new_full new_tensor".split())
_SCALAR_STEPS = frozenset("to float double half clone detach reciprocal pow square mul div truediv neg".split())
# What comes out does not change when all of what goes in is multiplied by a factor, or has no derivative to pass on.
_ENDS = frozenset("normalize cosine_similarity layer_norm batch_norm instance_norm group_norm detach item numpy tolist".split())
_MEASURES = frozenset("norm vector_norm linalg_norm linalg_vector_norm pow square abs sqrt".split())
# A smaller constant is a weight of the loss as often as it is a scale.
_SMALLEST_SCALE = 8.0
_SAME = 1e-6
# Weights that people write have few digits.
_DIGITS = 3


class Fate(Enum):
    """What became of the scale in the derivatives."""

    REACHED_LOSS = "reached the loss"
    TAKEN_OUT = "taken out"
    UNKNOWN = "unknown"


class ScaledDerivative(msgspec.Struct, frozen=True):
    """A derivative of a tensor that was multiplied by `scale` (None: by a scaler whose scale is not known)."""

    event: Event
    scale: float | None
    by_hand: bool
    fate: Fate
    measure: Op | None = None
    backward: Event | None = None


class ScaledDerivatives:
    """Sorts the derivatives of a run that were taken with a graph of their own."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.trace = Trace(run)
        self.events = [event for event in run.events_of("gradient_of_gradient") if event.detail.get("create_graph")]
        self.scalings = [event for event in run.events_of("scale") if event.value != 1.0]

    @property
    def traced(self) -> list[Event]:
        """Those whose tensor is known."""
        return [event for event in self.events if event.detail.get("of", "t") != "t"]

    @cached_property
    def found(self) -> list[ScaledDerivative]:
        found = []
        for event in self.traced:
            scaled, scale = self._scale_behind(event)
            by_hand = not scaled
            if by_hand:
                scale = self._scale_by_hand(event)
            if scaled or scale is not None:
                found.append(self._followed(event, scale, by_hand=by_hand))
        return found

    # Back to the scale

    @cached_property
    def _scaler_products(self) -> dict[int, float | None]:
        """By number: the multiplications inside of `scaler.scale`, which come right before their event, with the scale."""
        found: dict[int, float | None] = {}
        for event in self.scalings:
            product = self.trace.producer(event.detail.get("product"))
            if product is not None:
                found[product.seq] = event.value
                continue
            number = event.seq - 1
            while number in self.trace.ops:
                op = self.trace.ops[number]
                factor = self.trace.producer(op.inputs[-1]) if len(op.inputs) > 1 else None
                if is_in(op, _TIMES) and factor is not None and plain(factor.name) == "to":
                    found[number] = event.value
                elif plain(op.name) != "to":
                    break
                number -= 1
        return found

    @cached_property
    def _scales(self) -> set[float]:
        return {event.value for event in self.scalings if event.value is not None and event.value >= _SMALLEST_SCALE}

    def _scale_behind(self, event: Event) -> tuple[bool, float | None]:
        """Whether a scaler's product is behind the tensor that was derived or behind the weights of the derivative."""
        for key in ("of", "weighted_by"):
            for op in self.trace.region(self.trace.producer(event.detail.get(key)), _LINEAR):
                if op.seq in self._scaler_products:
                    return True, self._scaler_products[op.seq]
                if key == "weighted_by" and (is_in(op, _FILLS) or is_in(op, _TIMES)):
                    for number in _numbers(op):
                        if any(abs(number / scale - 1) <= _SAME for scale in self._scales):
                            return True, number
        return False, None

    def _scale_by_hand(self, event: Event) -> float | None:
        """The constant that multiplies the derived tensor as well as a loss, when the script divides gradients somewhere."""
        scale = self._outer_factor(event.detail.get("of"))
        addends = [
            f"o{op.seq}"
            for each in self.trace.backwards
            for op in self.trace.region(self.trace.producer(each.detail.get("of")), _OUTER | {"add"})
        ]
        if scale is None or scale not in {self._outer_factor(reference) for reference in addends}:
            return None
        return scale if self._divides_gradients(event) else None

    def _outer_factor(self, reference: Any) -> float | None:
        op = self.trace.back_through(self.trace.producer(reference), _OUTER)
        if op is None or len(op.inputs) != 1 or not (is_in(op, _TIMES) or is_in(op, _OVER)):
            return None
        numbers = list(_numbers(op))
        if len(numbers) != 1 or numbers[0] == 0:
            return None
        factor = numbers[0] if is_in(op, _TIMES) else 1 / numbers[0]
        return factor if factor >= _SMALLEST_SCALE else None

    def _divides_gradients(self, event: Event) -> bool:
        tree = None if event.location is None else text_of_file(self.run, event.location)
        return tree is not None and any(_divides_gradient(node) for node in ast.walk(tree))

    # On to the loss

    def _followed(self, event: Event, scale: float | None, *, by_hand: bool) -> ScaledDerivative:
        weights = self.trace.producer(event.detail.get("weighted_by"))
        if weights is not None and self._constants_take_out(weights, scale, divides=False):
            return ScaledDerivative(event, scale, by_hand, Fate.TAKEN_OUT)
        if any(
            self._takes_out(op, set(), scale) for op in self.trace.region(self.trace.producer(event.detail.get("of")), _LINEAR)
        ):
            return ScaledDerivative(event, scale, by_hand, Fate.TAKEN_OUT)
        if self._text_hides_operations(event):
            return ScaledDerivative(event, scale, by_hand, Fate.UNKNOWN)
        reached, fates = self._reach(event, scale)
        for backward in self.trace.backwards:
            root = self.trace.producer(backward.detail.get("of"))
            if root is not None and root.seq in reached:
                measure = next((reached[seq] for seq in sorted(reached) if is_in(reached[seq], _MEASURES)), None)
                return ScaledDerivative(event, scale, by_hand, Fate.REACHED_LOSS, measure, backward)
        known = fates == {Fate.TAKEN_OUT}
        return ScaledDerivative(event, scale, by_hand, Fate.TAKEN_OUT if known else Fate.UNKNOWN)

    def _text_hides_operations(self, event: Event) -> bool:
        """Functions over lists of tensors that work in place give no result that could be traced."""
        tree = None if event.location is None else text_of_file(self.run, event.location)
        if tree is None:
            return False
        return any(isinstance(node, ast.Attribute) and node.attr.startswith("_foreach_") for node in ast.walk(tree))

    def _reach(self, event: Event, scale: float | None) -> tuple[dict[int, Op], set[Fate]]:
        """The operations that the scaled derivatives go through, and why they go no further."""
        reached: dict[int, Op] = {}
        fates: set[Fate] = set()
        carried = {f"g{event.seq}"}
        for seq in sorted(number for number in self.trace.ops if number > event.seq):
            op = self.trace.ops[seq]
            if carried.isdisjoint(op.inputs):
                continue
            ends = is_in(op, _ENDS) or is_in(op, NO_DERIVATIVE) or is_in(op, ZERO_DERIVATIVE)
            fate = Fate.TAKEN_OUT if ends else self._takes_out(op, carried, scale)
            if fate is not None:
                fates.add(fate)
                continue
            reached[seq] = op
            carried.add(f"o{seq}")
            # Derivatives of what carries the scale carry it as well.
            carried.update(f"g{each.seq}" for each in self.events if each.detail.get("of") == f"o{seq}")
        return reached, fates

    def _takes_out(self, op: Op, carried: set[str], scale: float | None) -> Fate | None:
        """Whether a product or quotient takes the scale out; None when it does not."""
        divides = is_in(op, _OVER)
        if op.seq in self._scaler_products or not (divides or is_in(op, _TIMES)):
            return None
        if self._constants_take_out(op, scale, divides=divides):
            return Fate.TAKEN_OUT
        others = [reference for reference in op.inputs if reference not in carried]
        if divides and carried and not others and len(op.inputs) > 1:
            # A quotient of two derivatives: the scale is in both.
            return Fate.TAKEN_OUT
        if len(op.inputs) < 2:
            return None if list(_numbers(op)) else Fate.UNKNOWN
        if not carried:
            return None
        return next(filter(None, (self._factor_takes_out(reference, scale) for reference in others)), None)

    def _factor_takes_out(self, reference: str, scale: float | None) -> Fate | None:
        """The same of a factor that is a tensor of one number."""
        if reference == "t":
            return Fate.UNKNOWN
        op = self.trace.producer(reference)
        if op is None or shape_of(op) not in ((), (1,)):
            return None
        for each in self.trace.region(op, _SCALAR_STEPS):
            if is_in(each, _FILLS) and any(self._is_scale(max(n, 1 / n), scale) for n in _numbers(each) if n > 0):
                return Fate.TAKEN_OUT
            if "t" in each.inputs:
                return Fate.UNKNOWN
        return None

    def _constants_take_out(self, op: Op, scale: float | None, *, divides: bool) -> bool:
        return any(self._is_scale(number if divides else 1 / number, scale) for number in _numbers(op) if number > 0)

    def _is_scale(self, divisor: float, scale: float | None) -> bool:
        """Whether a division by this number takes the scale out, with a weight or a mean in the same number or without."""
        if scale is None:
            mantissa = divisor.hex().partition("p")[0]
            return divisor >= _SMALLEST_SCALE and mantissa == "0x1.0000000000000"
        for ratio in (divisor / scale, divisor / scale**2):
            if ratio >= 1 - _SAME and abs(ratio - round(ratio)) <= _SAME * ratio:
                return True
            # A weight may be written into the same constant (10 / scale): the weight is a short number, the constant is not.
            if _is_short(1 / ratio) and not _is_short(divisor) and not _is_short(1 / divisor):
                return True
        return False


def _is_short(number: float) -> bool:
    return abs(float(f"{number:.{_DIGITS - 1}e}") / number - 1) <= _SAME


def _numbers(op: Op) -> Iterator[float]:
    """The numbers among the arguments of an operation."""
    values = [*op.settings.get("args", ()), op.settings.get("other"), op.settings.get("fill_value"), op.settings.get("value")]
    for value in values:
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield float(value)


def _divides_gradient(node: ast.AST) -> bool:
    """`p.grad /= s`, `p.grad.div_(s)`, `p.grad = p.grad * inverse`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div | ast.Mult):
        return _names_gradient(node.target)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult):
        return _names_gradient(node.left) or _names_gradient(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr.strip("_") in _TIMES | _OVER and _names_gradient(node.func.value)
    return False


def _names_gradient(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr == "grad" and _is_tensor(part) for part in ast.walk(node))


def _is_tensor(attribute: ast.Attribute) -> bool:
    """Whether `.grad` is that of a tensor, not the function of `torch.autograd`."""
    return not ast.unparse(attribute.value).endswith("autograd")
