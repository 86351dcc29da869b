"""What a jitted function sees besides its arguments is never frozen: each way to change it."""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import uopc
from uopc import Tensor, UopcWarning, nn
from uopc.frontend.captured import captured

pytestmark = pytest.mark.usefixtures("cache_folder")

ONE = np.ones(2, np.float32)


class Holder:
    """Something with attributes."""

    shared = 2

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.value * FACTOR

    @property
    def factor(self) -> float:
        return FACTOR

    @staticmethod
    def apart(x: Tensor) -> Tensor:
        return x * 2


class Slots:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Choice(enum.Enum):
    TWO = 2
    FIVE = 5


FACTOR = 2.0
SETTINGS = Holder(2)
LIST: list[Any] = [Holder(2)]
ITEMS: list[Any] = [Holder(2)]
DICT: dict[str, Any] = {"a": 2}
SET = {2}
PAIR: tuple[Any, ...] = (Holder(2), 1)
SLOTS = Slots(2)
CHOICE = Choice.TWO
WEIGHT = Tensor([2.0])
MODULE = types.ModuleType("settings_of_a_user")
MODULE.value = 2
MODULE.inner = types.ModuleType("settings_of_a_user.inner")
MODULE.inner.held = Holder(2)
PARTIAL = functools.partial(lambda x, k: x * k, k=2)
ARRAYS = [np.full(2, 2, np.float32)]
LAYER = nn.Linear(2, 2, bias=False)


def helper(x: Tensor) -> Tensor:
    return x * 2


def other(x: Tensor) -> Tensor:
    return x * 5


def product_of(x: Tensor, values: Any) -> Tensor:
    for value in values:
        x = x * value
    return x


def put(name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setitem(globals(), name, value)


def attribute(of: Any, name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(of, name, value)


CASES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[pytest.MonkeyPatch], Any]]] = {
    "a global number": (lambda x: x * FACTOR, put("FACTOR", 5.0)),
    "an object in its place": (lambda x: x * SETTINGS.value, put("SETTINGS", Holder(5))),
    "an attribute": (lambda x: x * SETTINGS.value, attribute(SETTINGS, "value", 5)),
    "a class's attribute": (lambda x: x * SETTINGS.shared, attribute(Holder, "shared", 5)),
    "a class's, by its name": (lambda x: x * Holder.shared, attribute(Holder, "shared", 5)),
    "what a property reads": (lambda x: x * SETTINGS.factor, put("FACTOR", 5.0)),
    "what __call__ reads": (lambda x: SETTINGS(x) / 2, put("FACTOR", 5.0)),
    "a called object": (lambda x: SETTINGS(x) / 2, put("SETTINGS", Holder(5))),
    "a called object's attribute": (
        lambda x: SETTINGS(x) / 2,
        attribute(SETTINGS, "value", 5),
    ),
    "a method": (lambda x: SETTINGS.apart(x), attribute(Holder, "apart", staticmethod(other))),
    "a slot": (lambda x: x * SLOTS.value, attribute(SLOTS, "value", 5)),
    "an item": (lambda x: x * ITEMS[0].value, lambda _: ITEMS.__setitem__(0, Holder(5))),
    "one item more": (
        lambda x: product_of(x, [each.value for each in LIST]),
        put("LIST", [LIST[0], Holder(2.5)]),
    ),
    "an entry": (lambda x: x * DICT["a"], lambda patch: patch.setitem(DICT, "a", 5)),
    "one entry more": (
        lambda x: product_of(x, DICT.values()),
        lambda patch: patch.setitem(DICT, "b", 2.5),
    ),
    "a set": (lambda x: product_of(x, SET), put("SET", {5})),
    "a tuple": (lambda x: x * PAIR[0].value * PAIR[1], put("PAIR", (PAIR[0], 2.5))),
    "a function": (lambda x: helper(x), put("helper", other)),
    "a partial": (lambda x: PARTIAL(x), put("PARTIAL", functools.partial(other))),
    "a choice": (lambda x: x * CHOICE.value, put("CHOICE", Choice.FIVE)),
    "a tensor in its place": (lambda x: x * WEIGHT, put("WEIGHT", Tensor([5.0]))),
    "a module's number": (lambda x: x * MODULE.value, attribute(MODULE, "value", 5)),
    "an object in a module": (
        lambda x: x * MODULE.inner.held.value,
        attribute(MODULE.inner, "held", Holder(5)),
    ),
    "an array in a list": (
        lambda x: x * Tensor(ARRAYS[0]),
        lambda _: ARRAYS[0].fill(5),
    ),
    "a layer's weight": (
        lambda x: x.linear(LAYER.weight),
        attribute(LAYER, "weight", Tensor([[2.0, 3.0], [5.0, 0.0]])),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_seen(name: str, monkeypatch: pytest.MonkeyPatch):
    function, change = CASES[name]
    LAYER.weight = Tensor([[1.0, 1.0], [0.0, 2.0]])
    f = uopc.jit(function)
    for _ in range(4):
        assert f(Tensor(ONE)).tolist() == [2, 2]
    assert f.traces == 2
    with monkeypatch.context() as patch:
        change(patch)
        with pytest.warns(UopcWarning, match="traced again, for a value that is no argument"):
            assert f(Tensor(ONE)).tolist() == [5, 5]
        assert [f(Tensor(ONE)).tolist() for _ in range(3)] == [[5, 5]] * 3


def test_closures_and_defaults():
    scale, settings = Tensor([2.0]), Holder(3)

    def function(x: Tensor, held: Holder = settings) -> Tensor:
        return x * scale * held.value

    f = uopc.jit(function)
    assert [f(Tensor(ONE)).tolist() for _ in range(3)] == [[6, 6]] * 3
    settings.value = 5
    with pytest.warns(UopcWarning, match="value was 3, is 5"):
        assert f(Tensor(ONE)).tolist() == [10, 10]
    old, scale = scale, Tensor([4.0])
    with pytest.warns(UopcWarning, match="scale is another Tensor"):
        assert f(Tensor(ONE)).tolist() == [20, 20]
    assert old.tolist() == [2]


def test_what_is_replaced_and_never_read_is_let_be():
    """What a loop stores beside the model does not make every step a trace."""
    net = Holder(2)

    @uopc.jit
    def step(x: Tensor) -> Tensor:
        return x * net.value

    for k in range(8):
        net.last = step(Tensor(ONE))
        net.history = [Holder(k)]
    assert step.traces <= 5
    net.value = 5
    with pytest.warns(UopcWarning, match="value was 2, is 5"):
        assert step(Tensor(ONE)).tolist() == [5, 5]


def test_watches_of_a_model_are_few():
    """They are looked at in each call."""
    layers = [nn.Linear(4, 4) for _ in range(50)]
    assert len(captured(lambda x: [layer(x) for layer in layers], [])) < 170


def test_evaluation_mode_set_after_the_trace():
    layer = nn.Dropout(0.5)
    jitted = uopc.jit(lambda x: layer(x))
    x = Tensor.ones(64)
    for _ in range(3):
        assert (jitted(x).numpy() != 1).any()
    layer.eval()
    with pytest.warns(UserWarning, match="traced again"):
        assert (jitted(x).numpy() == 1).all()


def test_an_attribute_that_hides_the_class_one():
    class Signed:
        negated = False

        def turned(self, x: Tensor) -> Tensor:
            return -x if self.negated else x

        def __call__(self, x: Tensor) -> Tensor:
            return self.turned(x)

    signed = Signed()
    jitted = uopc.jit(lambda x: signed(x))
    x = Tensor.ones(2)
    for _ in range(3):
        assert jitted(x).tolist() == [1, 1]
    signed.negated = True
    with pytest.warns(UserWarning, match="traced again"):
        assert jitted(x).tolist() == [-1, -1]
    signed.turned = lambda x: x * 5  # type: ignore[method-assign]
    with pytest.warns(UserWarning, match="traced again"):
        assert jitted(x).tolist() == [5, 5]


def test_a_name_outside_that_is_bound_anew():
    held = [Tensor([0.0]).realize()]

    @uopc.jit
    def added(x: Tensor) -> Tensor:
        held[0] = held[0] + 1
        return x + held[0]

    with pytest.raises(uopc.UopcError, match="captured-tensor"):
        added(Tensor([0.0]))
