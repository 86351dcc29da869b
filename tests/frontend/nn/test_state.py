"""Names of tensors, checkpoints, and memory that does not grow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uopc import Tensor, UopcError, nn
from uopc.frontend.graph import node_count

pytestmark = pytest.mark.usefixtures("cache_folder")


class Plain:
    """A model that is no Module."""

    def __init__(self) -> None:
        self.layers = [nn.Linear(2, 3), {"norm": nn.BatchNorm(3)}, (Tensor.relu, "words", 3)]
        self.again = self.layers[0]
        self.own = self
        self.scale = Tensor(2.0)


def test_names_are_paths_and_objects_are_met_once():
    model = Plain()
    assert list(nn.get_state_dict(model)) == [
        "layers.0.weight", "layers.0.bias", "layers.1.norm.weight", "layers.1.norm.bias",
        "layers.1.norm.running_mean", "layers.1.norm.running_var",
        "layers.1.norm.num_batches_tracked", "scale",
    ]  # fmt: skip
    assert len(nn.get_parameters(model)) == 4
    assert list(nn.get_state_dict(nn.Sequential(Tensor.relu, nn.Linear(1, 1)), "net")) == [
        "net.1.weight",
        "net.1.bias",
    ]


def test_deep_nesting_needs_no_recursion():
    nested: list[Any] = [Tensor(1.0)]
    for _ in range(5000):
        nested = [nested]
    assert len(nn.get_state_dict(nested)) == 1


def test_modules_set_their_mode_and_forget_gradients():
    class Net(nn.Module):
        def __init__(self) -> None:
            self.first = nn.Linear(2, 2)
            self.drop = [nn.Dropout(0.1)]

        def forward(self, x: Tensor) -> Tensor:
            return self.first(x)

    net = Net()
    assert list(net.named_parameters()) == ["first.weight", "first.bias"]
    net(Tensor.ones(1, 2)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert not net.eval().drop[0].training
    with pytest.raises(NotImplementedError, match="neither __call__ nor forward"):
        nn.Module()(1)


def test_states_are_loaded_by_name():
    a, b = nn.Linear(2, 3), nn.Linear(2, 3)
    b.load_state_dict(a.state_dict())
    assert b.weight.numpy().tolist() == a.weight.numpy().tolist()
    assert b.weight.requires_grad
    b.load_state_dict({"weight": np.ones((3, 2))}, strict=False)
    assert b.weight.numpy().sum() == 6
    assert b.weight.element == "f32"
    before = b.weight.numpy()
    for state, words in (
        ({"weight": a.weight}, "lacks bias"),
        ({**a.state_dict(), "x": a.bias, "y": a.bias}, "has unknown x, y"),
        ({"weight": np.ones((3, 2)), "bias": np.ones(2)}, "bias has shape [2], expected [3]"),
    ):
        with pytest.raises(UopcError) as caught:
            b.load_state_dict(state)
        assert words in str(caught.value)
        assert caught.value.kind == "wrong-state"
    assert b.weight.numpy().tolist() == before.tolist()


def test_files_keep_every_type(tmp_path: Path):
    pytest.importorskip("safetensors", reason="needs safetensors")
    kinds = [
        "f64",
        "f32",
        "f16",
        "bf16",
        "i64",
        "i32",
        "i16",
        "i8",
        "ui64",
        "ui32",
        "ui16",
        "ui8",
        "i1",
    ]
    tensors = {kind: Tensor([[0, 1, 3]], dtype=kind) for kind in kinds}
    tensors |= {"scalar": Tensor(1.5), "none": Tensor.zeros(0, 3), "lazy": Tensor.ones(2) * 3}
    file = tmp_path / "all.safetensors"
    nn.save(tensors, file, {"what": "a test"})
    found = nn.load(file)
    assert set(found) == set(tensors)
    for name, tensor in tensors.items():
        assert found[name].element == tensor.element
        assert found[name].shape == tensor.shape
        assert found[name].numpy().tobytes() == tensor.numpy().tobytes()
    assert list(tmp_path.iterdir()) == [file]
    from safetensors import safe_open

    with safe_open(str(file), "numpy") as opened:
        assert opened.metadata() == {"what": "a test"}
        assert opened.get_tensor("f32").tolist() == [[0, 1, 3]]


def test_files_that_are_none_are_told(tmp_path: Path):
    pytest.importorskip("safetensors", reason="needs safetensors")
    with pytest.raises(UopcError, match="cannot read"):
        nn.load(tmp_path / "missing")
    (tmp_path / "text").write_text("no tensors here")
    with pytest.raises(UopcError, match="is no safetensors file"):
        nn.load(tmp_path / "text")
    with pytest.raises(UopcError, match="cannot write"):
        nn.save({"x": Tensor(1.0)}, tmp_path / "no folder" / "x")


def test_training_goes_on_from_a_file_to_the_bit(tmp_path: Path):
    pytest.importorskip("safetensors", reason="needs safetensors")
    x = Tensor(np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32))

    def made() -> tuple[nn.Module, nn.AdamW]:
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Linear(4, 1))
        return model, nn.AdamW(model.parameters(), lr=0.05)

    def train(model: nn.Module, opt: nn.AdamW, steps: int) -> None:
        for _ in range(steps):
            opt.zero_grad()
            model(x).square().mean().backward()
            opt.step()

    Tensor.manual_seed(3)
    model, opt = made()
    train(model, opt, 3)
    nn.save({**nn.get_state_dict({"model": model, "opt": opt})}, tmp_path / "c.safetensors")
    train(model, opt, 3)
    other = made()
    nn.load_state_dict(
        dict(zip(("model", "opt"), other, strict=True)), nn.load(tmp_path / "c.safetensors")
    )
    train(*other, 3)
    for name, tensor in nn.get_state_dict([model, opt]).items():
        again = nn.get_state_dict(list(other))[name]
        assert again.numpy().tobytes() == tensor.numpy().tobytes(), name


def test_steps_leave_nothing_behind():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Linear(4, 1))
    opt = nn.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = Tensor.ones(8, 3).realize()

    def step() -> None:
        opt.zero_grad()
        model(x).square().mean().backward()
        opt.step()
        opt.zero_grad()

    for _ in range(3):
        step()
    before = node_count()
    for _ in range(20):
        step()
    assert node_count() == before
