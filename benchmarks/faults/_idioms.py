"""Where training scripts keep their parts: optimizers, models, losses, evaluations. As much as the base scripts need."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from benchmarks.faults._source import Source, assigned, dotted, last_name

OPTIMIZERS = ("Adam", "AdamW", "SGD", "RMSprop")
LAYERS = ("Linear", "Conv2d")
ACTIVATIONS = ("relu", "tanh", "gelu")
CLASSIFICATION = {"CrossEntropyLoss": "cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits"}
_WITHOUT_GRADIENTS = ("no_grad", "inference_mode")


@dataclass(frozen=True)
class OptimizerMade:
    """`name = torch.optim.Adam(model.parameters(), ...)`."""

    call: ast.Call
    name: str
    """Last part of what it is assigned to: functions and methods are assumed to call it the same."""
    parameters: ast.Call
    model: str


def optimizer_made(source: Source) -> OptimizerMade | None:
    """The last optimizer that the script makes: the one of the training proper."""
    found = None
    for call in source.calls(*OPTIMIZERS):
        target = assigned(source.statement_of(call))
        first = call.args[0] if call.args else None
        if target is None or not isinstance(first, ast.Call) or last_name(first.func) != "parameters":
            continue
        owner = first.func.value if isinstance(first.func, ast.Attribute) else None
        name = last_name(target)
        if isinstance(owner, ast.Name) and name is not None:
            found = OptimizerMade(call, name, first, owner.id)
    return found


def model_made(source: Source) -> ast.Assign | None:
    """The statement that makes the model whose parameters the optimizer gets."""
    made = optimizer_made(source)
    if made is None:
        return None
    for node in source.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and last_name_of_target(node) == made.model:
            return node
    return None


def last_name_of_target(statement: ast.stmt) -> str | None:
    target = assigned(statement)
    return None if target is None else last_name(target)


def model_body(source: Source) -> ast.AST | None:
    """Where the layers of the model are made: its class, the function that builds it, or the expression itself."""
    made = model_made(source)
    if made is None or not isinstance(made.value, ast.Call):
        return None
    name = last_name(made.value.func)
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
    return made.value


def forward_of(source: Source) -> ast.FunctionDef | None:
    """The forward method of the model's class."""
    body = model_body(source)
    if not isinstance(body, ast.ClassDef):
        return None
    return next((node for node in body.body if isinstance(node, ast.FunctionDef) and node.name == "forward"), None)


def calls_within(node: ast.AST, *names: str) -> list[ast.Call]:
    found = [each for each in ast.walk(node) if isinstance(each, ast.Call) and last_name(each.func) in names]
    return sorted(found, key=lambda each: (each.lineno, each.col_offset))


def method_statements(source: Source, owner: str, method: str) -> list[tuple[ast.Expr, ast.Call]]:
    """The statements that are nothing but `….owner.method(…)`."""
    found = []
    for call in source.calls(method):
        statement = source.statement_of(call)
        if not isinstance(statement, ast.Expr) or statement.value is not call or not isinstance(call.func, ast.Attribute):
            continue
        if last_name(call.func.value) == owner:
            found.append((statement, call))
    return found


def backward_of(source: Source, near: ast.AST) -> ast.Call | None:
    """The last backward call in the loop around this node."""
    loop = source.loop_of(near)
    return next(reversed(calls_within(loop, "backward")), None) if loop is not None else None


def in_evaluation(source: Source, node: ast.AST) -> bool:
    """Under no_grad or inference_mode, as a block or as a decorator."""
    for each in source.above(node):
        if isinstance(each, ast.With):
            texts = [source.text_of(item.context_expr) for item in each.items]
        elif isinstance(each, ast.FunctionDef):
            texts = [source.text_of(decorator) for decorator in each.decorator_list]
        else:
            continue
        if any(word in text for text in texts for word in _WITHOUT_GRADIENTS):
            return True
    return False


def loss_calls(source: Source, module: str, function: str) -> list[ast.Call]:
    """Calls of this loss in training: of the function, or of what an object of the module was assigned to."""
    names = {last_name_of_target(source.statement_of(call)) for call in source.calls(module)} - {None}
    found = source.calls(function, *sorted(name for name in names if name))
    return [call for call in found if call.args and not in_evaluation(source, call)]


def model_calls(source: Source, *, training: bool) -> list[ast.Call]:
    """Calls of the model itself, by the name it has in the script; in the training loop, or in evaluation."""
    made = optimizer_made(source)
    if made is None:
        return []
    calls = source.calls(made.model)
    if training:
        return [call for call in calls if not in_evaluation(source, call) and backward_of(source, call) is not None]
    return [call for call in calls if in_evaluation(source, call)]


def data_lines(source: Source) -> tuple[int, ...]:
    """Where a finding about the training data may be: where arrays become tensors, its loader, or the model's call."""
    loaders = [call for call in source.calls("DataLoader") if any(told.arg == "shuffle" for told in call.keywords)]
    made = source.calls("tensor", "as_tensor", "from_numpy")
    return tuple(call.lineno for call in [*made, *(loaders or model_calls(source, training=True))])


def held_out_lines(source: Source) -> tuple[int, ...]:
    """Where a finding about the evaluation data is: the line of its loader, or of the model's call."""
    loaders = [call for call in source.calls("DataLoader") if all(told.arg != "shuffle" for told in call.keywords)]
    return tuple(call.lineno for call in loaders or model_calls(source, training=False))


@dataclass(frozen=True)
class Loaded:
    """A data set of scikit-learn: the statement, the names of its features and labels, and the number of classes (0: none)."""

    statement: ast.Assign
    features: str
    labels: str
    classes: int


_CLASSES = {"load_digits": 10, "load_wine": 3, "load_breast_cancer": 2, "load_diabetes": 0}


def loaded(source: Source) -> Loaded | None:
    """`bunch = load_digits()` or `X, y = load_digits(return_X_y=True)`."""
    for call in source.calls(*_CLASSES):
        statement = source.statement_of(call)
        if not isinstance(statement, ast.Assign) or statement.value is not call:
            continue
        target = statement.targets[0]
        classes = _CLASSES[last_name(call.func) or ""]
        if isinstance(target, ast.Name):
            return Loaded(statement, f"{target.id}.data", f"{target.id}.target", classes)
        if isinstance(target, ast.Tuple):
            features, labels = (dotted(element) for element in target.elts)
            return Loaded(statement, features, labels, classes)
    return None
