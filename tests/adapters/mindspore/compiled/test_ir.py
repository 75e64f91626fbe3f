"""The text of compiled programs, and the walk over it."""

from __future__ import annotations

from typing import Any

import pytest

from trueline.adapters.mindspore.compiled import ir
from trueline.adapters.mindspore.compiled.ir_walk import Place, Value, Walk, tensors_in

# A function of a weight, differentiated and called, as the compiler writes it; shortened.
PROGRAM = """\
# IR entry: @1_step_9
%para1_x: <Tensor[Float32], (8, 4)> : [8, 4]
%para2_w: <Ref[Tensor[Float32]], (3, 4), ref_key=net.w, is_parameter>  :  has_default

# In file /home/me/train.py:20~24/def forward(x):/
subgraph @5_forward_3 parent: [subgraph @1_step_9](%para4_x) {
  %0(y) = PrimFunc_MatMul(%para4_x, $(@1_step_9:para2_w), Bool(0), Bool(1)) {instance name: matmul}
      : (<Tensor[Float32], (8, 4)>, <Ref[Tensor[Float32]], (3, 4), ref_key=net.w>) -> (<Tensor[Float32], (8, 3)>)
      # Fullname with scope: (Default/head-Dense/MatMul-op0)
      # In file /home/me/train.py:30, 4~9/    loss = step(x)/
      # In file /home/me/train.py:20~24/def forward(x):/
      # In file /home/me/train.py:21, 8~12/    y = x @ w.T/
  %1(CNode_5) = PrimFunc_ReLU(%0)
      : (<Tensor[Float32], (8, 3)>) -> (<Tensor[Float32], (8, 3)>)
      # In file /home/me/train.py:20~24/def forward(x):/
      # In file /home/me/train.py:22, 4~9/    relu(y)/
  %2(CNode_6) = StopGradient(%1)
      : (<Tensor[Float32], (8, 3)>) -> (<Tensor[Float32], (8, 3)>)
  %3(CNode_7) = PrimFunc_ReduceMean(%0, (), Bool(0))
      : (<Tensor[Float32], (8, 3)>, <Tuple[], TupleShape()>, <Bool, NoShape>) -> (<Tensor[Float32], ()>)
      # In file /home/me/train.py:23, 4~9/    return y.mean()/
  %4(CNode_8) = Depend(%3, %2) primitive_attrs: {side_effect_propagate: I64(1)}
      : (<Tensor[Float32], ()>, <Tensor[Float32], (8, 3)>) -> (<Tensor[Float32], ()>)
  Return(%4)
      : (<Tensor[Float32], ()>)
}

subgraph @6_UnpackCall_2(%para7_Parameter_1, %para8_Parameter_3) {
  %0(CNode_1) = TupleGetItem(%para8_Parameter_3, I64(0))
      : (<Tuple[Tensor[Float32]], TupleShape((8, 4))>, <Int64, NoShape>) -> (<Tensor[Float32], (8, 4)>)
  %1(CNode_2) = Parameter_1[@@5_forward_3](%0)
      : (<Tensor[Float32], (8, 4)>) -> (<Tuple[Tensor[Float32],Func], TupleShape((), NoShape)>)
  Return(%1)
      : (<Tuple[Tensor[Float32],Func], TupleShape((), NoShape)>)
}

subgraph @1_step_9() {
  %0(CNode_11) = J(@5_forward_3) primitive_attrs: {side_effect_propagate: I64(1)}
      : (<Func, NoShape>) -> (<Func, NoShape>)
  %1(CNode_12) = MakeTuple(%para1_x)
      : (<Tensor[Float32], (8, 4)>) -> (<Tuple[Tensor[Float32]], TupleShape((8, 4))>)
  %2(CNode_13) = call @6_UnpackCall_2(%0, %1)
      : (<Func, NoShape>, <Func, NoShape>) -> (<Tuple[Tensor[Float32],Func], TupleShape((), NoShape)>)
  %3(CNode_14) = TupleGetItem(%2, I64(0))
      : (<Tuple[Tensor[Float32],Func], TupleShape((), NoShape)>, <Int64, NoShape>) -> (<Tensor[Float32], ()>)
  Return(%3)
      : (<Tensor[Float32], ()>)
}
"""


class Told:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.operations: list[tuple[str, int | None, int]] = []

    def operation(self, name: str, arguments: list[Any], outputs: list[Value], place: Place) -> None:  # noqa: ARG002
        self.operations.append((name, None if place.line is None else place.line.number, len(tensors_in(arguments))))

    def function(self, *_: Any) -> bool:
        return False

    def enter(self, *_: Any) -> None:
        return None


def test_a_program_is_read() -> None:
    program = ir.read(PROGRAM.splitlines())
    assert program.entry == "1_step_9"
    assert program.inputs["para1_x"] == ir.Tensor((8, 4), "float32")
    assert program.weights == {"para2_w": "net.w"}
    forward = program.graphs["5_forward_3"]
    assert (forward.label, forward.part, forward.file) == ("forward", False, "/home/me/train.py")
    product = forward.nodes[0]
    assert (product.name, product.callee, product.kind) == ("y", "PrimFunc_MatMul", ir.Tensor((8, 3), "float32"))
    assert product.scope == "Default/head-Dense"
    assert product.line == ir.Line("/home/me/train.py", 21, "    y = x @ w.T", "forward")


def test_only_what_is_differentiated_is_told() -> None:
    program = ir.read(PROGRAM.splitlines())
    inputs = {name: Value(kind) for name, kind in program.inputs.items()}
    told = Told()
    walk = Walk(program, inputs, told, lambda _: True)
    walk.run()
    assert walk.complete
    # The StopGradient that keeps a dropped result alive is the compiler's, not the script's.
    assert told.operations == [("MatMul", 21, 2), ("ReLU", 22, 1), ("ReduceMean", 23, 1)]
    assert [root.shape for root in walk.roots] == [()]


def test_what_is_not_understood_is_admitted() -> None:
    text = PROGRAM.replace("%3(CNode_7) = PrimFunc_ReduceMean(%0, (), Bool(0))", "%3(CNode_7) = %9(%0)")
    program = ir.read(text.splitlines())
    walk = Walk(program, {name: Value(kind) for name, kind in program.inputs.items()}, Told(), lambda _: True)
    walk.run()
    assert not walk.complete


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<Tensor[Float32], (8, 16)>", ir.Tensor((8, 16), "float32")),
        ("<Ref[Tensor[Float16]], (4), ref_key=bn.gamma, is_parameter>", ir.Tensor((4,), "float16")),
        ("<Tensor[Int32], ()>", ir.Tensor((), "int32")),
        (
            "<Tuple[Tensor[Float32]*2,Func], TupleShape((8), (), NoShape), elements_use_flags={[const vector]{1, 1}}>",
            (ir.Tensor((8,), "float32"), ir.Tensor((), "float32"), None),
        ),
        ("<Func, NoShape>", None),
        ("", None),
    ],
)
def test_kinds(text: str, kind: Any) -> None:
    assert ir.kind_of(text) == kind


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I64(-1)", -1), ("F32(1e-07)", 1e-07), ("Bool(1)", True), ("None", None), ('"mean"', "mean"),
        ("(I64(8), I64(16))", (8, 16)), ("(3, 3)", (3, 3)), ("KeywordArg[key : dtype, value : None]", None),
        ("ValueProblem[DeadNode]", ir.Opaque("ValueProblem[DeadNode]")),
    ],
)  # fmt: skip
def test_constants(text: str, value: Any) -> None:
    assert ir.constant_of(text) == value
