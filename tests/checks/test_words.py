"""Findings are in the words of the framework that the run was trained with."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from builders import build_run

from tests.architecture.sources import PACKAGE
from trueline.checks import check_of_id
from trueline.model import Conclusion, Finding
from trueline.store import Run
from trueline.views.words import MINDSPORE, PYTORCH, either, words_of

WORDS_OF_PYTORCH = re.compile(
    r"""\btorch\.|torchvision|torchrun|zero_grad|DataLoader|\bbackward\(\)|\.backward\b|\bstep\(\)|\b(train|eval)\(\)|state_dict
    |GradScaler|autocast|unscale_|get_scale|scaler\.step|detach\b|no_grad|inference_mode|retain_graph|autograd|\bleaf\b
    |ModuleList|nn\.Linear|nn\.init|requires_grad_|clip_grad|(?<!get_)\bparameters\(\)|\bp\.grad\b|\bF\.|\bdim=|\bbetas=
    |\bin[ ]forward\b|register_buffer|pack_padded_sequence|get_worker_info|set_epoch|x\.size\(|strict=True|DistributedDataParallel
    |\bno_sync\b|\bdist\.""",
    re.VERBOSE,
)
# Functions (None: whole files) whose words never meet a run of MindSpore, or are right there too.
ONLY_PYTORCH: dict[str, set[str] | None] = {
    # `zero_grad` is an event of PyTorch's runs only.
    "checks/tr_01_gradients_not_cleared": {"_evidence_of_carrying", "_cleared_before_step", "_batches_thrown_away"},
    # So it is here; and schedulers that a script steps have a `step()` in both frameworks.
    "checks/tr_03_step_order": {"_idle_to_the_end", "_per_batch", "_scheduler_first"},
    "checks/tr_08_accumulation": {"_thrown_away"},
    # DistributedDataParallel, and workers that read a stream each, are PyTorch's.
    "checks/tr_04_ranks_drift/drift_causes": {"_initial_weights", "_raw_module", "_no_sync"},
    "checks/dp_05_wrong_sharding": {"_workers_repeat"},
    # That the tensors of a load are the model's own is recorded of PyTorch's loads only.
    "views/own_weights": None,
    "checks/wi_02_wrong_pretrained_weights/__init__": {"_restores_nothing"},
    # MindSpore has no packed sequences.
    "checks/dp_04_wrong_padding/padding_faults": {"packing_fault"},
}
STEPS = range(4)


def texts_of(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """The strings and f-strings of a program that are no docstrings, and more than names and lists of names."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            said = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | parts:
            said = node.value
        else:
            continue
        if not re.fullmatch(r"[\w\s]*", said):
            yield node, said


def texts_for(tree: ast.AST, framework: str) -> set[int]:
    """The strings that `either` is given for one framework, by identity."""
    return {
        id(node)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "either"
        for keyword in call.keywords
        if keyword.arg == framework
        for node in ast.walk(keyword.value)
    }


def only_of_pytorch(path: Path, tree: ast.Module) -> set[int]:
    exempt = ONLY_PYTORCH.get(name_of(path), set())
    nodes = [node for node in tree.body if exempt is None or (isinstance(node, ast.FunctionDef) and node.name in exempt)]
    return {id(part) for node in nodes for part in ast.walk(node)}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


def files() -> list[Path]:
    paths = [path for layer in ("checks", "views") for path in (PACKAGE / layer).rglob("*.py")]
    return sorted(path for path in paths if name_of(path) not in {"views/words", "views/rank_words"})


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def patterns_in(tree: ast.AST) -> set[int]:
    """What is looked for in a script's text is no word to the user."""
    compiled = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile")
    return {id(part) for node in compiled for part in ast.walk(node)}


@cache
def only_classes_of_pytorch() -> frozenset[str]:
    """The names of classes that scripts of PyTorch use, and that MindSpore has not."""
    from mindspore import amp, dataset, experimental, nn
    from torch import amp as torch_amp
    from torch import nn as torch_nn
    from torch import optim, utils

    theirs = (torch_nn, torch_nn.parallel, optim, optim.lr_scheduler, utils.data, torch_amp)
    named = (pair for module in theirs for pair in vars(module).items() if isinstance(pair[1], type))
    ours = (nn, dataset, amp, experimental.optim, experimental.optim.lr_scheduler)
    known = {name for module in ours for name in dir(module)}
    return frozenset(name for name, one in named if one.__module__.startswith("torch.") and name not in known)


def class_of_pytorch(said: str, *, chosen: bool) -> str | None:
    """The first class that a text names as PyTorch does: `nn.ReLU`, unless the text was `chosen` for
    MindSpore (it has one of that name, or another test fails), or one that MindSpore has not."""
    qualified = re.search(r"(?<!\w)nn\.[A-Z]\w*", said)
    if qualified is not None and not chosen:
        return qualified[0]
    return next((word for word in re.findall(r"(?<![\w.])[A-Z]\w+", said) if word in only_classes_of_pytorch()), None)


def test_words_of_pytorch_stand_where_they_are_chosen() -> None:
    wrong = []
    for path in files():
        tree = parsed(path)
        allowed = texts_for(tree, "pytorch") | only_of_pytorch(path, tree) | patterns_in(tree)
        of_mindspore = texts_for(tree, "mindspore")
        for node, said in texts_of(tree):
            match = WORDS_OF_PYTORCH.search(said)
            word = match[0] if match else class_of_pytorch(said, chosen=id(node) in of_mindspore)
            if word is not None and id(node) not in allowed:
                wrong.append(f"{name_of(path)}:{node.lineno}: {word!r} in {said!r}")
    assert not wrong, "Say it with `either` or `words_of` (views/words.py):\n" + "\n".join(wrong)


def test_classes_are_seen() -> None:
    assert {"DataLoader", "ModuleList", "EmbeddingBag", "OneCycleLR"} <= only_classes_of_pytorch()
    assert not {"Adam", "LSTM", "GELU", "DistributedSampler"} & only_classes_of_pytorch()
    assert class_of_pytorch("Try nn.LeakyReLU.", chosen=False) == "nn.LeakyReLU"
    assert class_of_pytorch("Try nn.LeakyReLU.", chosen=True) is None
    assert class_of_pytorch("Give the EmbeddingBag an index.", chosen=True) == "EmbeddingBag"
    assert class_of_pytorch("An LSTM, with Adam.", chosen=False) is None


def test_words_of_mindspore_name_no_class_of_pytorch() -> None:
    said = [getattr(MINDSPORE, field) for field in MINDSPORE.__struct_fields__]
    assert [word for each in said if (word := class_of_pytorch(each, chosen=True))] == []


def test_exceptions_exist() -> None:
    for name, functions in ONLY_PYTORCH.items():
        tree = parsed(PACKAGE / f"{name}.py")
        assert (functions or set()) <= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_names_of_mindspore_exist() -> None:
    import mindspore as ms

    owners = {"ops": ms.ops, "nn": ms.nn, "amp": ms.amp, "mindspore": ms}
    told = [getattr(MINDSPORE, field) for field in MINDSPORE.__struct_fields__]
    for path in files():
        tree = parsed(path)
        chosen = texts_for(tree, "mindspore")
        told += [said for node, said in texts_of(tree) if id(node) in chosen]
    names = [match for said in told for match in re.findall(r"\b(ops|nn|amp|mindspore)\.(\w+)", said)]
    assert names
    assert [f"{owner}.{name}" for owner, name in names if not hasattr(owners[owner], name)] == []
    functions = ("set_train", "trainable_params", "get_parameters", "parameters_dict", "construct")
    assert all(hasattr(ms.nn.Cell, name) for name in functions)
    assert all(hasattr(ms, name) for name in ("value_and_grad", "load_param_into_net"))
    assert all(hasattr(ms.common.initializer, name) for name in ("HeUniform", "XavierUniform", "HeNormal", "Orthogonal"))


def finding_of(tmp_path: Path, framework: str, check: str) -> Finding:
    """What a check finds in a run of one model, trained in evaluation mode with betas the wrong way round."""
    rows = {
        "root_call": [(step * 10 + 2, step, 1, 1, 0, 1, 0, 1, 0, 0, 0, None, None) for step in STEPS],
        "optimizer": [(2, "Adam", 4)],
        "optimizer_parameter": [(1, 0, number, number + 1, "[32]", len(STEPS), 0) for number in range(4)],
        "hyperparameter": [(0, 2, 0, "betas", "[0.999, 0.9]")],
    }
    run = Run(build_run(tmp_path / framework, [1.0 for _ in STEPS], rows=rows, frameworks={framework: "2.10.0"}))
    try:
        assert words_of(run) is (MINDSPORE if framework == "mindspore" else PYTORCH)
        assert either(run, pytorch="torch", mindspore="mindspore") == framework
        return check_of_id(check).conclude(run)
    finally:
        run.close()


@pytest.mark.parametrize(
    ("check", "pytorch", "mindspore"),
    [("api.01", "betas=(0.9, 0.999)", "beta1=0.9, beta2=0.999"), ("api.02", "net.train()", "net.set_train(True)")],
)
def test_the_same_finding_in_two_frameworks(tmp_path: Path, check: str, pytorch: str, mindspore: str) -> None:
    of_torch, of_mindspore = (finding_of(tmp_path, framework, check) for framework in ("torch", "mindspore"))
    assert of_torch.conclusion == of_mindspore.conclusion == Conclusion.PROBLEM_FOUND
    assert of_torch.location == of_mindspore.location
    assert pytorch in of_torch.fix
    assert mindspore in of_mindspore.fix
    said = [of_mindspore.summary, of_mindspore.fix, of_mindspore.limits, *(each.text for each in of_mindspore.evidence)]
    assert not any(WORDS_OF_PYTORCH.search(text) for text in said)
