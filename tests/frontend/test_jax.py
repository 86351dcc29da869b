"""Functions of JAX: pytrees in and out, keys, numbers, results held against JAX's own."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import uopc  # noqa: E402
from uopc import UopcError  # noqa: E402

pytestmark = pytest.mark.usefixtures("cache_folder")
EXAMPLES = Path(__file__).parents[2] / "examples"
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


@pytest.mark.parametrize("target", ["interpreter", "c"])
def test_pytrees_come_in_and_go_out(target):
    def f(p, x):
        return {"sum": [p["w"] @ x, p["b"] + 1], "n": (x.argmax(),), "none": None}

    p = {"w": X, "b": np.arange(3)}
    program = uopc.from_jax(f, p, X[0], target=target)
    got, expected = program(p, X[0]), jax.jit(f)(p, X[0])
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert isinstance(a, np.ndarray)
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 1e-6)


def test_arrays_of_jax_numbers_and_shapes_are_arguments():
    def f(x, scale):
        return x * scale

    program = uopc.from_jax(f, jax.ShapeDtypeStruct((3, 4), jnp.float32), 2.0)
    np.testing.assert_array_equal(program(jnp.asarray(X), 3.0), X * 3)
    np.testing.assert_array_equal(program(X, 4), X * 4)


def test_arguments_that_are_not_used_and_those_that_are_static():
    program = uopc.from_jax(lambda x, n, y: x**n, X, 2, X, static_argnums=1)
    np.testing.assert_allclose(program(X, X), X * X, 1e-6)


def test_random_keys_are_arguments_and_results():
    def f(key):
        key, mine = jax.random.split(key)
        return key, jax.random.uniform(mine, (5,))

    key = jax.random.key(7)
    program = uopc.from_jax(f, key)
    (new, got), (expected_key, expected) = program(key), f(key)
    np.testing.assert_array_equal(got, expected)
    assert (new == expected_key).all()
    np.testing.assert_array_equal(program(new)[1], f(new)[1])


def test_other_structures_and_shapes_are_told_in_words():
    program = uopc.from_jax(lambda p: p["a"] + p["b"], {"a": X, "b": X})
    with pytest.raises(UopcError, match=re.escape("the arguments are PyTreeDef(({'a': *},))")):
        program({"a": X})
    with pytest.raises(UopcError, match=r"shape \[2, 4\]"):
        program({"a": X[:2], "b": X})


def test_what_is_not_there_names_its_op():
    with pytest.raises(NotImplementedError, match=r"complex<f32>"):
        uopc.from_jax(jnp.fft.fft, X.astype(np.complex64))


@pytest.mark.parametrize("name", ["jax_gpt_block", "jax_scan", "jax_train_step"])
def test_the_examples_check_themselves(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert "kernels" in capsys.readouterr().out
