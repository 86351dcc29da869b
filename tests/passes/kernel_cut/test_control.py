"""Loops and branches on the whole way down, on random programs and on those at the edges."""
# ruff: noqa: E501 -- the text of a program stands on a line

from __future__ import annotations

import numpy as np
import pytest
from random_control import ControlProgram

from uopc.dialects.errors import UopcError
from uopc.frontend.compile import CompileRequest, lower, read_program
from uopc.frontend.compile import compile as compile_program
from uopc.interpreters.tensor import run_function
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import load_program

SEEDS = range(24)
RNG = np.random.default_rng(1)
INPUTS = (
    np.array(3, np.int32),
    RNG.integers(-5, 6, 4, dtype=np.int32),
    RNG.integers(-5, 6, (3, 4), dtype=np.int32),
)


@pytest.fixture(scope="module")
def programs():
    """Random programs in one module, and what the reference says they give."""
    text = "".join(ControlProgram(seed, f"p{seed}").text for seed in SEEDS)
    module = read_program(text)
    return module, {f"p{seed}": run_function(module, f"p{seed}", INPUTS) for seed in SEEDS}


@pytest.mark.parametrize("fuse", ["none", "auto"])
def test_random_programs_in_c(programs, fuse):
    module, expected = programs
    source = lower(module.clone(), CompileRequest(fuse_reduce=fuse)).program()
    assert source.source.count("for (;;)") > 10
    for level in (0, 3):
        for name, results in expected.items():
            run = load_program(source, name, options=CompileOptions(opt_level=level), debug=0)
            for k, (got, value) in enumerate(zip(run(*INPUTS), results, strict=True)):
                assert np.array_equal(got, value), f"@{name} result {k} at -O{level}"


@pytest.mark.parametrize("level", ["ukernel", "uloop", "linear"])
def test_random_programs_at_each_level(level):
    for seed in SEEDS[:8]:
        text = ControlProgram(seed, "p").text
        expected = run_function(read_program(text), "p", INPUTS)
        run = compile_program(text, f"interpreter:{level}", debug=0)
        for got, value in zip(run(*INPUTS), expected, strict=True):
            assert np.array_equal(got, value), f"seed {seed}"


def loop(types: str, carried: str, body: str, given: str, limit: int, arguments: str) -> str:
    """A loop that counts to a number and returns what else it carries."""
    names = ", ".join(part.split(" = ")[0] for part in carried.split(", "))
    typed = ", ".join(
        f"{n} : {t}" for n, t in zip(names.split(", "), types.split(", "), strict=True)
    )
    count = len(names.split(", "))
    results = ", ".join(f"%loop#{k + 1}" for k in range(count))
    return f"""
func.func @f({arguments}) -> ({types}) {{
  %zero = utensor.constant 0 : tensor<i32>
  %loop:{count + 1} = scf.while (%i = %zero, {carried}) : (tensor<i32>, {types}) -> (tensor<i32>, {types}) {{
    %limit = utensor.constant {limit} : tensor<i32>
    %more = utensor.cmplt %i, %limit : tensor<i32>
    %flag = tensor.extract %more[] : tensor<i1>
    scf.condition(%flag) %i, {names} : tensor<i32>, {types}
  }} do {{
  ^bb0(%i : tensor<i32>, {typed}):
    {body}
    %one = utensor.constant 1 : tensor<i32>
    %next = utensor.add %i, %one : tensor<i32>
    scf.yield %next, {given} : tensor<i32>, {types}
  }}
  func.return {results} : {types}
}}
"""


def test_two_values_in_each_others_places():
    """Fibonacci: what each place holds comes from another."""
    types = "tensor<2xi64>, tensor<2xi64>"
    text = loop(
        types,
        "%a = %x, %b = %y",
        "%sum = utensor.add %a, %b : tensor<2xi64>",
        "%b, %sum",
        50,
        "%x : tensor<2xi64>, %y : tensor<2xi64>",
    )
    run = compile_program(text, debug=0)
    a, b = run(np.array([0, 1]), np.array([1, 1]))
    assert a.tolist() == [12586269025, 20365011074]
    assert b.tolist() == [20365011074, 32951280099]


def test_no_step_at_all_gives_the_start():
    text = loop(
        "tensor<3xf32>", "%a = %x", "%b = utensor.exp %a : tensor<3xf32>", "%b", 0,
        "%x : tensor<3xf32>",
    )  # fmt: skip
    x = np.array([1, 2, 3], np.float32)
    assert np.array_equal(compile_program(text, debug=0)(x), x)


def test_values_without_elements():
    text = loop(
        "tensor<0x3xf32>", "%a = %x", "%b = utensor.exp %a : tensor<0x3xf32>", "%b", 3,
        "%x : tensor<0x3xf32>",
    )  # fmt: skip
    assert compile_program(text, debug=0)(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_a_scatter_in_a_loop_touches_what_it_updates_only():
    """The workspace holds no copy of the buffer, and no kernel of the loop walks over it."""
    put = (
        "%at = utensor.reshape %i : tensor<i32> -> tensor<1xi32>\n"
        "%v = utensor.cast %at : tensor<1xi32> -> tensor<1xf32>\n"
        "%p = utensor.scatter set %a, %at, %v axis 0 : tensor<1000xf32>, tensor<1xi32>, "
        "tensor<1xf32>"
    )
    text = loop("tensor<1000xf32>", "%a = %x", put, "%p", 10, "%x : tensor<1000xf32>")
    run = compile_program(text, debug=0)
    expected = np.where(np.arange(1000) < 10, np.arange(1000), -1).astype(np.float32)
    assert np.array_equal(run(np.full(1000, -1, np.float32)), expected)
    assert run.plan.workspace_bytes < 1000
    inside = [call for call in run.plan.kernels if call.inside]
    assert max(call.bytes for call in inside) <= 16
    assert [call.inside for call in inside] == [("while",), ("do",), ("do",)]


def test_equal_kernels_of_loops_are_one():
    text = loop(
        "tensor<4xf32>, tensor<4xf32>",
        "%a = %x, %b = %y",
        "%c = utensor.exp %b : tensor<4xf32>\n%d = utensor.exp %a : tensor<4xf32>",
        "%c, %d",
        3,
        "%x : tensor<4xf32>, %y : tensor<4xf32>",
    )
    run = compile_program(text, debug=0)
    assert len({call.symbol for call in run.plan.kernels if call.doc == "exp"}) == 1


def test_a_gpu_refuses_in_words():
    text = loop(
        "tensor<3xf32>", "%a = %x", "%b = utensor.exp %a : tensor<3xf32>", "%b", 2,
        "%x : tensor<3xf32>",
    )  # fmt: skip
    with pytest.raises(NotImplementedError, match=r"'ukernel.while' runs on the CPU only"):
        lower(read_program(text), CompileRequest(target="cuda"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("scf.condition(%flag) %i, %a", "scf.condition(%flag) %i, %x", "hands on something else"),
        ("%flag = tensor.extract %more[] : tensor<i1>", "%flag = arith.constant true", "its flag"),
        ("scf.yield %next, %b", "scf.yield %next, %more2", "it yields other types"),
    ],
)
def test_refused_in_words(old, new, message):
    text = loop(
        "tensor<3xf32>",
        "%a = %x",
        "%b = utensor.exp %a : tensor<3xf32>\n%more2 = utensor.cmplt %a, %b : tensor<3xf32>",
        "%b",
        2,
        "%x : tensor<3xf32>",
    )
    assert old in text
    text = text.replace(old, new)
    if "more2" in new:
        text = text.replace(
            "%more2 : tensor<i32>, tensor<3xf32>", "%more2 : tensor<i32>, tensor<3xi1>"
        )
    with pytest.raises(UopcError) as caught:
        compile_program(text, debug=0)
    assert message in caught.value.message
    assert caught.value.location is not None


def test_debug_levels_run_loops_as_one(capsys):
    text = loop(
        "tensor<3xi32>", "%a = %x", "%b = utensor.add %a, %a : tensor<3xi32>", "%b", 4,
        "%x : tensor<3xi32>",
    )  # fmt: skip
    assert compile_program(text, debug=2)(np.ones(3, np.int32)).tolist() == [16] * 3
    assert "the plan has loops" in capsys.readouterr().err
