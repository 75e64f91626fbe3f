"""Results that a forward pass computes and throws away."""

from __future__ import annotations

from trueline.model import Evidence, Op
from trueline.views.dataflow import Trace, needs_gradient, plain
from trueline.views.loss_patterns import Fault
from trueline.views.source import is_dropped

LAYERS = frozenset(
    """
    linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d batch_norm layer_norm group_norm instance_norm
    rms_norm embedding relu gelu elu selu celu silu leaky_relu prelu tanh hardtanh relu6 softplus mish dropout dropout1d dropout2d
    dropout3d alpha_dropout max_pool1d max_pool2d avg_pool1d avg_pool2d adaptive_avg_pool2d adaptive_avg_pool1d normalize lstm gru
    multi_head_attention_forward scaled_dot_product_attention hardswish hardsigmoid sigmoid bilinear add
    """.split()
)


def dropped_result(trace: Trace) -> Fault | None:
    """A layer or activation whose result nothing takes, on a line that the text of the script proves to throw it away."""
    for op in trace.ops.values():
        if not _is_unused_layer(trace, op) or op.location is None:
            continue
        how = is_dropped(trace.run, op.location, plain(op.name))
        if how is None or _is_used_at_other_steps(trace, op):
            continue
        return _fault(trace, op, how)
    return None


def _is_unused_layer(trace: Trace, op: Op) -> bool:
    return (
        not op.used
        and op.module is not None
        and trace.run.modules[op.module].kind != "loss"
        and plain(op.name) in LAYERS
        and needs_gradient(op)
        and not op.settings.get("inplace")
        and any(event.step == op.step and event.seq > op.seq for event in trace.backwards)
    )


def _is_used_at_other_steps(trace: Trace, op: Op) -> bool:
    """Whether the same line's result is used at another time, as an output that only some steps need is."""
    return any(
        other.used and other.name == op.name and other.location == op.location and other.module == op.module
        for other in trace.ops.values()
    )


def _fault(trace: Trace, op: Op, how: str) -> Fault:
    run = trace.run
    module = run.modules[op.module] if op.module is not None else None
    name = module.name if module is not None and module.path else None
    where = None if op.location is None else op.location.of_module(name)
    what = (
        f"{name} ({plain(op.name)})"
        if name is not None and module is not None and module.kind != "other"
        else f"`{plain(op.name)}`"
    )
    dropped = "is not assigned to anything" if how == "statement" else f"goes into the variable `{how}`, which is never read"
    skip = (
        "Assign the result (x = …) so that the next layer gets it."
        if how == "statement"
        else f"Use `{how}` where it is meant to go (the next layer, or the sum of a skip connection), or remove the line."
    )
    return Fault(
        f"The result of {what} is thrown away: it {dropped}, and the network goes on without it.",
        0.93,
        [
            Evidence(
                f"At step {op.step} no operation, loss or backward pass took the output of `{plain(op.name)}`.",
                {"operation": plain(op.name), "line": op.location.source if op.location is not None else None},
                op.step,
                where,
            )
        ],
        where,
        skip,
    )
