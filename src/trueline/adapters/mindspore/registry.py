"""Numbers for the user's cells and parameters, without leaving a trace on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from mindspore import Parameter, Tensor

from trueline.adapters.mindspore import kinds, tensors
from trueline.adapters.shared.registry import Registry as SharedRegistry
from trueline.recorder import Recorder
from trueline.recorder.identity import ByIdentity

# Values of a gradient that are compared; and how alike the directions of two are that only a number tells apart.
_COMPARED = 1 << 10
_SAME_DIRECTION = 0.99999


class Registry(SharedRegistry):
    """The trees of root cells. Gradients are not kept in parameters here: those of the running step are noted beside."""

    kinds = kinds
    tensors = tensors

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.initialised: ByIdentity = ByIdentity()
        self._gradients: dict[int, Any] = {}
        # Parameters that the loss does not depend on, as far as its operations were followed.
        self.cut_off: set[int] = set()

    def note_gradients(self, parameters: Any, gradients: Any) -> None:
        """These gradients belong to these parameters until the step ends; later ones (clipped, unscaled) replace earlier."""
        for parameter, gradient in zip(parameters, gradients, strict=False):
            self._gradients[id(parameter)] = gradient

    def forget_gradients(self) -> None:
        self._gradients = {}

    def parameter_of_gradient(self, tensor: Tensor) -> int | None:
        """The parameter whose gradient in this step a tensor is: that very one, or one of the same shape and direction."""
        known = [(number, self._gradients.get(id(parameter))) for number, parameter in self.parameters()]
        found = next((number for number, gradient in known if gradient is tensor), None)
        if found is not None or tensor.size < 2 or not tensors.is_plain(tensor):
            return found
        values = None
        for number, gradient in known:
            if isinstance(gradient, Tensor) and gradient.shape == tensor.shape and tensors.is_plain(gradient):
                values = tensors.evenly_drawn(tensor, _COMPARED) if values is None else values
                other = tensors.evenly_drawn(gradient, _COMPARED)
                if float(values.dot(other)) > _SAME_DIRECTION * float(np.linalg.norm(values) * np.linalg.norm(other)) > 0:
                    return number
        return None

    def mark_called_at(self, module_id: int, location: int | None) -> None:
        """Note the line of a module's first call where that was compiled."""
        row = self._module_rows.get(module_id)
        if row is not None and row[8] is None:
            row[8] = location
            self.recorder.row("module", row)

    def note_gradient_state(self, number: int, state: str) -> None:
        """Complete this step's row of a parameter whose gradient was not seen, but is known to be 'none' or a 'value'."""
        row = self._snapshots.get(number)
        if row is not None and row[0] == self.recorder.step:
            row[4] = state

    def init_location(self, tensor: Parameter) -> int | None:
        location: int | None = self.initialised.get(tensor)
        return location

    def gradient_of(self, tensor: Parameter) -> Any:
        """None also for the zeros that MindSpore fills in where no gradient can arrive."""
        gradient = self._gradients.get(id(tensor))
        number = self.parameter_ids.get(tensor)
        if number in self.cut_off and gradient is not None:
            if not tensors.is_plain(gradient) or tensors.any_nonzero(gradient):
                self.cut_off.discard(number)
            else:
                return None
        return gradient
