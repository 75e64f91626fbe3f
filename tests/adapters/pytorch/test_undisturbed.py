"""Watching changes nothing: torch is left as it was found, nothing stays on the user's objects, results are bit-identical."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.optim.optimizer as optimizer_module
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know

import trueline
from tests.adapters.pytorch.conftest import Recorded
from tests.adapters.pytorch.loops import batches, loader, small_net, train
from trueline.launch import record
from trueline.store import Run

_MISSING = object()


def patched_attributes() -> list[tuple[Any, str]]:
    """All that a recording replaces, as its own list says."""
    with record(name="list") as recording:
        (adapter,) = [one for one in recording._adapters if one.name == "pytorch"]
        sets = (adapter._patches, adapter._loads._fills, recording._patches)
        return [(owner, name) for patches in sets for owner, name, _, _ in patches._replaced]


def test_torch_is_left_exactly_as_it_was_found(recorded: Recorded) -> None:
    attributes = patched_attributes()
    assert len(attributes) > 80

    def state() -> list[Any]:
        return [vars(owner).get(name, _MISSING) for owner, name in attributes]

    def script() -> None:
        assert all(one is not other for one, other in zip(state(), before, strict=True)), "the test looks at what is replaced"
        model = small_net()
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=3)

    before = state()
    hooks = (len(optimizer_module._global_optimizer_pre_hooks), len(optimizer_module._global_optimizer_post_hooks))
    torch_names = {name: id(value) for name, value in vars(torch).items()}
    recorded(script)
    assert all(one is other for one, other in zip(before, state(), strict=True))
    assert hooks == (len(optimizer_module._global_optimizer_pre_hooks), len(optimizer_module._global_optimizer_post_hooks))
    assert torch.overrides._len_torch_function_stack() == 0
    assert {name: id(value) for name, value in vars(torch).items() if name in torch_names} == torch_names


def test_torch_is_left_as_found_after_an_exception() -> None:
    call = nn.Module.__call__
    with pytest.raises(KeyError), record(name="broken"):  # noqa: PT012 - the block is the script
        small_net()(torch.randn(2, 4))
        raise KeyError
    assert nn.Module.__call__ is call
    assert torch.overrides._len_torch_function_stack() == 0


def test_the_public_name_works_more_than_once() -> None:
    for name in ("first", "second"):
        with trueline.record(name=name) as recording:
            small_net()(torch.randn(2, 4))
        assert recording.info.status == "finished"


def test_pause_and_resume(recorded: Recorded) -> None:
    assert recorded
    with record(name="paused") as recording:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train(model, optimizer, steps=2)
        recording.pause()
        train(model, optimizer, steps=3)
        recording.resume()
        train(model, optimizer, steps=2)
    run = Run(recording.directory)
    assert len(run.steps) == 4
    assert len(run.root_calls) == 4
    run.close()


class DropoutNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 16)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.4)
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.dropout(self.drop(torch.relu(self.norm(self.fc(x)))), 0.2, self.training))


def training_run() -> tuple[list[float], bytes, Tensor]:
    """Losses, weights and the state of the random stream after some steps with dropout and shuffling."""
    torch.manual_seed(3)
    model = DropoutNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(2):
        for x, y in loader(count=24, shuffle=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x / 50), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
    weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    return losses, weights, torch.get_rng_state()


def test_losses_weights_and_random_streams_are_bit_identical(recorded: Recorded) -> None:
    results: list[Any] = []
    plain = training_run()
    run = recorded(lambda: results.append(training_run()))
    losses, weights, stream = results[0]
    assert losses == plain[0]
    assert weights == plain[1]
    assert torch.equal(stream, plain[2])
    assert [step.loss for step in run.steps] == losses


def everything_on(model: nn.Module) -> dict[str, Any]:
    return {
        path: (sorted(vars(module)), {name: len(hooks) for name, hooks in vars(module).items() if name.endswith("_hooks")})
        for path, module in model.named_modules()
    }


def saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def test_nothing_is_left_on_the_users_objects(recorded: Recorded) -> None:
    def made() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(1)
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        train(model, optimizer, steps=3)
        return model, optimizer

    def views(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
        return [
            everything_on(model),
            sorted(vars(optimizer)),
            everything_on(pickle.loads(pickle.dumps(model))),  # noqa: S301 - made here
            b"trueline" in pickle.dumps(model),
            saved(model.state_dict()),
            saved(optimizer.state_dict()),
            saved(model),
            everything_on(copy.deepcopy(model)),
            [sorted(vars(parameter)) for parameter in model.parameters()],
        ]

    inside: list[Any] = []

    def script() -> None:
        pair = made()
        inside.append((*pair, views(*pair)))

    plain = views(*made())
    recorded(script)
    model, optimizer, while_watched = inside[0]
    assert while_watched == plain
    assert views(model, optimizer) == plain


def test_outputs_can_be_saved_without_a_warning(recorded: Recorded) -> None:
    """A hook on a tensor makes torch.save warn that it is not kept: the script did not put one there."""

    def script() -> None:
        model = small_net()
        out = model(torch.randn(2, 4))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            saved(out)

    recorded(script)


def test_names_imported_early_are_watched_and_given_back(recorded: Recorded) -> None:
    names = vars(nn.functional)
    original = names["cross_entropy"]
    own = globals()
    own["early_cross_entropy"] = original
    try:
        run = recorded(lambda: own["early_cross_entropy"](torch.randn(2, 3, requires_grad=True), torch.tensor([0, 1])))
        assert own["early_cross_entropy"] is original
    finally:
        del own["early_cross_entropy"]
    assert [call.kind for call in run.loss_calls] == ["cross_entropy"]


def test_a_compiled_model_still_trains(recorded: Recorded) -> None:
    results: list[list[float]] = []

    def script() -> None:
        torch.manual_seed(5)
        model = small_net()
        compiled = torch.compile(model, backend="eager")
        results.append(train(compiled, torch.optim.SGD(model.parameters(), lr=0.1), steps=3))  # type: ignore[arg-type]

    run = recorded(script)
    torch.manual_seed(5)
    model = small_net()
    assert results[0] == pytest.approx(train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=3), rel=1e-6)
    assert [step.loss for step in run.steps] == results[0]
    assert len(run.root_calls) == 3
    torch._dynamo.reset()


def test_a_recorder_that_fails_warns_once_and_lets_training_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    plain = training_run()
    with record(name="failing") as recording:
        model = small_net()
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=2)
        assert recording.recorder._writer is not None
        recording.recorder._writer.close()
        watched = training_run()
    assert watched[0] == plain[0]
    assert watched[1] == plain[1]
    assert capsys.readouterr().err.count("trueline: recording stopped") == 1
    run = Run(recording.directory)
    assert run.info.status == "finished"
    assert run.info.recorder_error
    assert len(run.steps) == 2
    run.close()
    assert torch.overrides._len_torch_function_stack() == 0


def test_a_run_directory_that_vanishes_does_not_stop_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with record(name="gone") as recording:
        for path in recording.directory.iterdir():
            path.unlink()
        recording.directory.rmdir()
        model = small_net()
        losses = train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=3)
    assert len(losses) == 3
    assert (tmp_path / "runs").is_dir()
    assert "trueline" in capsys.readouterr().err


def test_scripted_and_traced_models_pass(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(model, torch.randn(2, 4))
            scripted = torch.jit.script(model)
        x = next(batches(1))[0]
        assert torch.equal(traced(x), model(x))
        assert torch.equal(scripted(x), model(x))

    recorded(script)


def test_checkpointed_and_vmapped_calls_pass(recorded: Recorded) -> None:
    from torch.func import functional_call, grad, vmap
    from torch.utils.checkpoint import checkpoint

    def script() -> None:
        model = small_net()
        x, y = next(batches(1))
        F.cross_entropy(checkpoint(model, x, use_reentrant=False), y).backward()
        weights = {name: value.detach() for name, value in model.named_parameters()}

        def loss(parameters: dict[str, Tensor], sample: Tensor, label: Tensor) -> Tensor:
            return F.cross_entropy(functional_call(model, parameters, sample[None]), label[None])

        per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
        assert per_sample["0.weight"].shape == (8, 6, 4)

    recorded(script)
