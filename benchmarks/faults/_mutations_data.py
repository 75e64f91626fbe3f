"""Faults of the data: order, labels, missing values, scales, the split."""

from __future__ import annotations

import ast

from benchmarks.faults._idioms import data_lines, held_out_lines, loaded, model_calls, optimizer_made
from benchmarks.faults._mutation import Planting, mutation
from benchmarks.faults._source import Source, keyword, last_name


def _shuffles(source: Source) -> list[ast.Call]:
    """The calls that are told to shuffle, in scripts whose batches have a target beside the input."""
    made = optimizer_made(source)
    if made is None or not any(isinstance(loop.target, ast.Tuple) for loop in source.nodes if isinstance(loop, ast.For)):
        return []
    calls = [node for node in source.nodes if isinstance(node, ast.Call)]
    return [
        call
        for call in calls
        if (told := keyword(call, "shuffle")) and isinstance(told.value, ast.Constant) and told.value.value is True
    ]


@mutation("dp.03", "shuffle=True taken away")
def shuffle_removed(source: Source) -> list[Planting]:
    calls = _shuffles(source)
    if len(calls) != 1:
        return []
    told = keyword(calls[0], "shuffle")
    trained = model_calls(source, training=True)
    if told is None or not trained:
        return []
    # Batches made by hand have no loader; then the call that they go into is the place.
    line = calls[0].lineno if last_name(calls[0].func) == "DataLoader" else trained[0].lineno
    return [Planting([source.replace(told.value, "False")], (line,))]


@mutation("dp.03", "permutation per epoch replaced by the stored order")
def permutation_removed(source: Source) -> list[Planting]:
    trained = model_calls(source, training=True)
    found = []
    for call in source.calls("randperm"):
        if source.loop_of(call) is not None and trained:
            text = source.text_of(call).replace("randperm", "arange")
            found.append(Planting([source.replace(call, text)], (trained[0].lineno,)))
    return found


def _corrupted(source: Source, share: float, classes: int = 2) -> list[Planting]:
    data = loaded(source)
    # Pairs made from labels have labels of their own.
    if data is None or data.classes < classes or not source.calls("CrossEntropyLoss", "cross_entropy", "BCEWithLogitsLoss"):
        return []
    labels = data.labels
    text = (
        f"hit = np.random.default_rng(5).random(len({labels})) < {share}; "
        f"{labels}[hit] = ({labels}[hit] + np.random.default_rng(6).integers(1, {data.classes}, hit.sum())) % {data.classes}"
    )
    lines = (data.statement.end_lineno or data.statement.lineno, *data_lines(source))
    return [Planting([source.append(data.statement, text), source.importing("numpy as np")], lines)]


@mutation("ds.02", "5 % of the labels wrong")
def labels_wrong_5(source: Source) -> list[Planting]:
    # Of the small sets that would be a handful of samples.
    return _corrupted(source, 0.05, classes=10)


@mutation("ds.02", "10 % of the labels wrong")
def labels_wrong_10(source: Source) -> list[Planting]:
    return _corrupted(source, 0.10)


@mutation("ds.02", "20 % of the labels wrong")
def labels_wrong_20(source: Source) -> list[Planting]:
    return _corrupted(source, 0.20)


@mutation("ds.03", "four classes with a fortieth of their samples")
def classes_thinned(source: Source) -> list[Planting]:
    data = loaded(source)
    # A split into parts of fixed sizes needs all the samples.
    if data is None or data.classes < 10 or source.calls("random_split", "PairDataset"):
        return []
    x, y = data.features, data.labels
    text = f"kept = ({y} % 3 > 0) | (np.arange(len({y})) % 40 == 0); {x}, {y} = {x}[kept], {y}[kept]"
    return [Planting([source.append(data.statement, text), source.importing("numpy as np")], data_lines(source))]


def _features_changed(source: Source, change: str) -> list[Planting]:
    """Add a statement about the features, written `F` in it, behind the line that loads them."""
    data = loaded(source)
    if data is None:
        return []
    return [Planting([source.append(data.statement, change.replace("F", data.features))], data_lines(source))]


@mutation("ds.01", "NaN in a field")
def nan_planted(source: Source) -> list[Planting]:
    return _features_changed(source, "F[::41, 3] = float('nan')")


@mutation("ds.01", "-999 for missing values of a field")
def sentinel_planted(source: Source) -> list[Planting]:
    return _features_changed(source, "F[::11, 4] = -999.0")


@mutation("dp.01", "one feature 10,000 times the others")
def feature_scaled(source: Source) -> list[Planting]:
    # Pictures that a convolution reads have no features of their own, and what is standardised afterwards is healed.
    if source.calls("Conv2d", "StandardScaler", "std"):
        return []
    return _features_changed(source, "F[:, 20] *= 1e4")


@mutation("dp.01", "standardisation taken away")
def standardisation_removed(source: Source) -> list[Planting]:
    scaled = source.calls("fit_transform", "transform")
    if scaled:
        return [Planting([source.replace(call, source.text_of(call.args[0])) for call in scaled], data_lines(source))]
    for node in source.nodes:
        if isinstance(node, ast.Assign) and source.text_of(node).replace(" ", "") == "features=(features-mean)/std":
            return [Planting([source.replace(node.value, "features")], data_lines(source))]
    return []


@mutation("dp.02", "evaluation data not standardised")
def evaluation_not_standardised(source: Source) -> list[Planting]:
    if not source.calls("fit_transform"):
        return []
    lines = held_out_lines(source)
    return [
        Planting([source.replace(call, source.text_of(call.args[0]))], (call.lineno, *lines))
        for call in source.calls("transform")
    ]


def _held_out(source: Source) -> list[tuple[ast.Subscript, ast.expr]]:
    """`x[n:]` beside `x[:n]`: the part that is kept for evaluation, and where it starts."""
    slices = [
        (node, node.slice) for node in source.nodes if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
    ]
    heads = {(source.text_of(node.value), source.text_of(part.upper)) for node, part in slices if part.upper and not part.lower}
    return [
        (node, part.lower)
        for node, part in slices
        if part.lower and not part.upper and (source.text_of(node.value), source.text_of(part.lower)) in heads
    ]


@mutation("dp.02", "evaluation data on another scale")
def evaluation_scaled(source: Source) -> list[Planting]:
    held = [node for node, _ in _held_out(source)]
    found = [node for node in held if source.text_of(node.value) in ("x", "images", "features")]
    if source.calls("PairDataset"):
        return []
    return [Planting(source.wrap(node, "(", " * 16)"), (node.lineno, *held_out_lines(source))) for node in found[:1]]


@mutation("tr.06", "evaluation data drawn from the training rows")
def split_overlaps(source: Source) -> list[Planting]:
    if source.calls("PairDataset"):
        return []
    held = _held_out(source)
    if held:
        lines = (*(node.lineno for node, _ in held), *held_out_lines(source))
        return [Planting([source.replace(lower, f"{source.text_of(lower)} - 120") for _, lower in held], lines)]
    for call in source.calls("train_test_split"):
        statement = source.statement_of(call)
        if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Tuple) and len(target.elts) == 4:
            x, x_held, y, y_held = (source.text_of(element) for element in target.elts)
            text = f"{x_held}[:40], {y_held}[:40] = {x}[:40], {y}[:40]"
            return [Planting([source.append(statement, text)], (statement.lineno, *held_out_lines(source)))]
    for call in source.calls("random_split"):
        statement = source.statement_of(call)
        if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Tuple):
            train, held_out = (source.text_of(element) for element in target.elts)
            text = f"{held_out}.indices[:100] = {train}.indices[:100]"
            return [Planting([source.append(statement, text)], (statement.lineno, *held_out_lines(source)))]
    return []
