"""Tensors themselves: where they come from, how they are read, assignment with a copy first."""

from __future__ import annotations

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

from uopc import Tensor, UopcError
from uopc.dialects.element_types import ELEMENT_TYPES
from uopc.frontend.promotion import promote, type_table

pytestmark = pytest.mark.usefixtures("cache_folder")


def test_data_of_every_type_goes_in_and_out():
    for row in ELEMENT_TYPES:
        array = np.array([[0, 1, 1], [1, 0, 1]]).astype(row.numpy)
        t = Tensor(array)
        assert (t.element, t.dtype, t.shape) == (row.name, row.numpy, (2, 3))
        np.testing.assert_array_equal(t.numpy(), array)
        assert (t + t).element == row.name
        assert t.cast("f32").tolist() == array.astype(np.float32).tolist()


def test_numbers_and_lists():
    assert (Tensor(3).element, Tensor(3.0).element, Tensor(True).element) == ("i32", "f32", "i1")
    assert Tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert Tensor([1 << 40]).element == "i64"
    assert Tensor([]).shape == (0,)
    assert Tensor([1.9, -1.9, float("nan"), 1e20], dtype="i32").tolist() == [1, -1, 0, 2**31 - 1]
    assert Tensor([1, 2], dtype=float).element == "f32"
    assert Tensor(np.float64(2.0)).element == "f64"


@pytest.mark.parametrize("share", [Tensor, Tensor.from_numpy])
def test_any_layout_is_read_right(share):
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    read_only = a.copy()
    read_only.flags.writeable = False
    for array in (
        a.T, a[:, ::2], a[::-1], np.broadcast_to(a[0], (5, 4)), a[:, :1].T, read_only,
        a.astype(">f4"), np.asfortranarray(a), np.zeros((0, 3), np.float32),
    ):  # fmt: skip
        before = array.copy()
        t = share(array)
        t += 1
        np.testing.assert_array_equal(t.numpy(), before + 1)
        np.testing.assert_array_equal(array, before)


def test_memory_is_shared_only_where_asked():
    a = np.arange(4, dtype=np.float32)
    shared, copied = Tensor.from_numpy(a), Tensor(a)
    a[0] = 9
    assert (shared.tolist()[0], copied.tolist()[0]) == (9.0, 0.0)
    out = copied.numpy()
    out[0] = 7
    assert copied.tolist()[0] == 0.0
    assert not np.asarray(copied).flags.writeable
    np.testing.assert_array_equal(np.from_dlpack(copied), [0, 1, 2, 3])
    assert Tensor.from_dlpack(a).tolist() == [9, 1, 2, 3]
    assert Tensor.from_buffer(b"\x01\x02").tolist() == [1, 2]
    assert Tensor(bytearray(b"ab")).tolist() == [97, 98]


def test_creation():
    np.testing.assert_array_equal(Tensor.arange(5).numpy(), np.arange(5, dtype=np.int32))
    np.testing.assert_array_equal(Tensor.arange(7, 1, -2).numpy(), np.arange(7, 1, -2))
    np.testing.assert_allclose(Tensor.arange(0.0, 1.0, 0.25).numpy(), np.arange(0.0, 1.0, 0.25))
    np.testing.assert_array_equal(Tensor.eye(2, 3).numpy(), np.eye(2, 3))
    np.testing.assert_allclose(Tensor.linspace(0, 1, 5).numpy(), np.linspace(0, 1, 5))
    assert Tensor.full((2, 2), 7).tolist() == [[7, 7], [7, 7]]
    assert Tensor.full(3, 1.5).tolist() == [1.5] * 3
    assert Tensor.zeros(2, 3).shape == Tensor.ones((2, 3)).shape == (2, 3)
    assert Tensor.arange(300, dtype="ui8").tolist()[299] == 43


def test_random_numbers_are_repeatable_and_spread():
    Tensor.manual_seed(7)
    first = [Tensor.rand(1000), Tensor.randn(1000), Tensor.randint(1000, low=-2, high=3)]
    Tensor.manual_seed(7)
    again = [Tensor.rand(1000), Tensor.randn(1000), Tensor.randint(1000, low=-2, high=3)]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    uniform, normal, whole = (t.numpy() for t in first)
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.05
    assert abs(normal.mean()) < 0.15 and abs(normal.std() - 1) < 0.1
    assert set(whole.tolist()) == {-2, -1, 0, 1, 2}
    assert sorted(Tensor.randperm(9).tolist()) == list(range(9))
    assert not (Tensor.rand(8).numpy() == Tensor.rand(8).numpy()).all()


def test_assignment_is_numpys_with_a_copy_first():
    x = Tensor([1.0, 2.0, 3.0, 4.0])
    x[:] = x.flip()
    assert x.tolist() == [4.0, 3.0, 2.0, 1.0]
    x[1:] = x[:-1]
    assert x.tolist() == [4.0, 4.0, 3.0, 2.0]
    square = Tensor([[1.0, 2.0], [3.0, 4.0]])
    square[:] = square.T
    assert square.tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_a_lazy_read_sees_what_was_there():
    x = Tensor([1, 2, 3, 4, 5, 6, 7, 8])
    low, high = x[:4] + 0, x[4:] + 0
    x[:4] = high
    x[4:] = low
    assert x.tolist() == [5, 6, 7, 8, 1, 2, 3, 4]
    y = Tensor([1.0, 2.0])
    before = y * 10
    y += 1
    assert (before.tolist(), y.tolist()) == ([10.0, 20.0], [2.0, 3.0])


def test_operators_take_numpy_arrays_on_either_side():
    a, t = np.array([1.0, 2.0], np.float32), Tensor([3.0, 5.0])
    for got, expected in (
        (a + t, [4, 7]),
        (t - a, [2, 3]),
        (a * t, [3, 10]),
        (2 / t, [2 / 3, 0.4]),
    ):
        assert isinstance(got, Tensor)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    assert (3 - Tensor([1])).tolist() == [2]
    assert (2 ** Tensor([1.0, 3.0])).tolist() == [2.0, 8.0]
    assert (7 // Tensor([2])).tolist() == [3]
    assert (np.eye(2, dtype=np.float32) @ t).tolist() == [3.0, 5.0]
    assert [x.item() for x in t] == [3.0, 5.0]
    assert len(t) == 2 and t[0] == 3.0


def test_text():
    t = Tensor([1.0, 2.0])
    assert repr(t) == "Tensor([1., 2.], f32)"
    assert repr(t + 1) == "<Tensor f32[2], lazy>"
    assert "requires_grad" in repr(Tensor([1.0], requires_grad=True))


def test_the_table_of_types_is_a_lattice():
    table = type_table()
    names = [row.name for row in ELEMENT_TYPES]
    for i, a in enumerate(names):
        assert table[i][i] == a
        for j, b in enumerate(names):
            assert table[i][j] == table[j][i] == promote(a, b)
    assert (Tensor(np.ones(1, ml_dtypes.bfloat16)) + 1.5).element == "bf16"


def test_halves_are_summed_in_single():
    x = np.full(4096, 0.1, np.float16)
    got = Tensor(x).sum().item()
    assert got == np.float16(x.astype(np.float32).sum())
    assert np.isfinite(Tensor(np.full(70000, 2.0, np.float16)).mean().item())


def test_unknown_types_are_told():
    with pytest.raises(UopcError, match="f128"):
        Tensor([1.0], dtype="f128")
    with pytest.raises(UopcError, match="masked"):
        Tensor(np.ma.masked_array([1.0], [True]))


def test_copies_and_pickles_are_trained_like_the_tensor():
    x = Tensor([[1.0, -2.0]], dtype="bf16", requires_grad=True)
    (x * 3).sum().backward()
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (other.element, other.requires_grad) == ("bf16", True)
        assert other.tolist() == x.tolist()
        assert other.grad.tolist() == x.grad.tolist() == [[3.0, 3.0]]
        (other * 2).sum().backward()
        assert other.grad.tolist() == [[5.0, 5.0]]
    assert x.grad.tolist() == [[3.0, 3.0]]
    y = copy.copy(x)
    (y * 2).sum().backward()
    assert x.grad.tolist() == [[5.0, 5.0]]


def test_numpy_s_whole_numbers_are_sizes():
    n = np.int64(3)
    x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    assert Tensor.eye(n).shape == (3, 3)
    assert x.reshape(n, -1).roll(np.int32(1), np.int64(0)).tolist()[1] == x.tolist()[0]
    assert [p.shape for p in x.split(np.int64(2))] == [(2, 4), (1, 4)]
    assert [p.shape for p in x.tensor_split(np.int64(2))] == [(2, 4), (1, 4)]
    assert x.topk(np.int64(2))[0].shape == (3, 2)
    assert Tensor([0, 2]).one_hot(n).tolist() == [[1, 0, 0], [0, 0, 1]]
    image = Tensor.ones((1, 1, 6, 6))
    assert image.conv2d(Tensor.ones((1, 1, 3, 3)), stride=np.int64(2), padding=n).shape[-1] == 5
    assert image.max_pool2d(np.int64(2)).shape == (1, 1, 3, 3)
