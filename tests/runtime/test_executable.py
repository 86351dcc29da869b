from __future__ import annotations

import dataclasses
import multiprocessing
import threading
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import Buffer, KernelCall, Plan, Program, Symbol
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import load_program

A = np.arange(32, dtype=np.float32).reshape(4, 8)
B = np.full((4, 8), 0.5, np.float32)


def failure(action: Callable[[], object]) -> UopcError:
    with pytest.raises(UopcError) as caught:
        action()
    return caught.value


def test_one_output_is_an_array(add_program: Program):
    exe = load_program(add_program)
    result = exe(A, B)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, A + B)
    assert exe.plan.name == "add"
    assert exe.source == add_program.source


def test_by_name(add_program: Program):
    exe = load_program(add_program)
    np.testing.assert_array_equal(exe(b=B, a=A), A + B)
    np.testing.assert_array_equal(exe(A, b=B), A + B)
    np.testing.assert_array_equal(exe(in1=B, in0=A), A + B)


@pytest.mark.parametrize("level", range(4))
def test_opt_levels(add_program: Program, level: int):
    exe = load_program(add_program, options=CompileOptions(opt_level=level))
    np.testing.assert_array_equal(exe(A, B), A + B)


def forms() -> dict[str, np.ndarray]:
    raw = np.zeros(4 * 8 * 4 + 1, np.uint8)
    misaligned = raw[1:].view(np.float32).reshape(4, 8)
    misaligned[...] = A
    read_only = A.copy()
    read_only.flags.writeable = False
    return {
        "transposed": np.ascontiguousarray(A.T).T,
        "every second": np.repeat(A, 2, axis=1)[:, ::2],
        "flipped": np.ascontiguousarray(A[::-1])[::-1],
        "misaligned": misaligned,
        "read-only": read_only,
        "subclass": A.copy().view(np.memmap),
    }


@pytest.mark.parametrize("name", forms())
def test_any_form_of_input(add_program: Program, name: str):
    value = forms()[name]
    before = value.tobytes()
    result = load_program(add_program)(value, B)
    np.testing.assert_array_equal(result, A + B)
    assert value.tobytes() == before


def test_broadcast_stride_and_odd_unit_stride(
    copy_program: Callable[..., Program], add_program: Program
):
    row = np.broadcast_to(np.float32(3), (4, 8))
    np.testing.assert_array_equal(load_program(add_program)(row, B), row + B)
    exe = load_program(copy_program("f32", "float", (3, 1), 3))
    odd = np.arange(30, dtype=np.float32).reshape(3, 10)[:, :1]
    np.testing.assert_array_equal(exe(odd), odd)


def test_outputs_are_fresh_and_aligned(add_program: Program):
    exe = load_program(add_program)
    results = [exe(A, B) for _ in range(50)]
    assert all(result.ctypes.data % 64 == 0 for result in results)
    assert len({result.ctypes.data for result in results}) == 50
    assert all(result.flags.writeable for result in results)


DTYPES = [
    ("f64", "double", np.float64),
    ("f32", "float", np.float32),
    ("f16", "uint16_t", np.float16),
    ("bf16", "uint16_t", ml_dtypes.bfloat16),
    ("i1", "uint8_t", np.bool_),
    *[(f"i{bits}", f"int{bits}_t", np.dtype(f"int{bits}")) for bits in (8, 16, 32, 64)],
    *[(f"ui{bits}", f"uint{bits}_t", np.dtype(f"uint{bits}")) for bits in (8, 16, 32, 64)],
]


@pytest.mark.parametrize(("dtype", "ctype", "numpy_type"), DTYPES)
def test_every_dtype_and_rank_0(
    copy_program: Callable[..., Program], dtype: str, ctype: str, numpy_type: np.dtype
):
    exe = load_program(copy_program(dtype, ctype, (), 1))
    for value in (0, 1):
        scalar = np.array(value).astype(numpy_type)
        for form in (scalar, scalar[()]):
            result = exe(form)
            assert isinstance(result, np.ndarray)
            assert result.shape == ()
            assert result.dtype == np.dtype(numpy_type)
            assert result == scalar


def test_size_0(copy_program: Callable[..., Program]):
    exe = load_program(copy_program("f32", "float", (0, 4), 0))
    result = exe(np.empty((0, 4), np.float32))
    assert result.shape == (0, 4)


def test_booleans_of_other_bytes_become_one(copy_program: Callable[..., Program]):
    exe = load_program(copy_program("i1", "uint8_t", (4,), 4))
    odd = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    assert exe(odd).view(np.uint8).tolist() == [0, 1, 1, 1]
    assert odd.view(np.uint8).tolist() == [0, 1, 2, 255]
    scalar = load_program(copy_program("i1", "uint8_t", (), 1))
    assert scalar(odd[2:3].reshape(())).view(np.uint8) == 1


class TestWrongInputs:
    @pytest.fixture(autouse=True)
    def load(self, add_program: Program):
        self.exe = load_program(add_program)

    def test_count(self):
        error = failure(lambda: self.exe(A))
        assert str(error) == "error: add takes 2 inputs: `a`, `b`; got 1 [wrong-input-count]"
        assert failure(lambda: self.exe(A, B, A)).kind == "wrong-input-count"
        assert failure(lambda: self.exe(b=B)).hint == "missing: a"

    def test_shape(self):
        error = failure(lambda: self.exe(A, B.T))
        assert error.kind == "wrong-shape"
        assert error.message == "input `b` has shape [8, 4]; expected float32[4, 8]"
        assert "rank 2" in failure(lambda: self.exe(A, B.ravel())).hint

    def test_dtype(self):
        error = failure(lambda: self.exe(A.astype(np.float64), B))
        assert error.kind == "wrong-dtype"
        assert error.message == "input `a` has dtype float64; expected float32"
        assert 'array.astype("float32")' in error.hint
        assert failure(lambda: self.exe(A.astype(object), B)).kind == "wrong-dtype"
        assert failure(lambda: self.exe(np.zeros((4, 8), "f4,f4"), B)).kind == "wrong-dtype"

    def test_byte_order(self):
        error = failure(lambda: self.exe(A.astype(">f4"), B))
        assert error.kind == "byte-order"
        assert "`a`" in error.message

    @pytest.mark.parametrize("value", [A.tolist(), 2.0, 3, True, None, "text", b"x", np.ndarray])
    def test_python_values(self, value: object):
        error = failure(lambda: self.exe(value, B))
        assert error.kind == "wrong-type"
        assert error.message.endswith("expected a numpy array of float32")

    def test_masked(self):
        assert failure(lambda: self.exe(np.ma.masked_array(A), B)).kind == "wrong-type"

    def test_unknown_and_repeated_names(self):
        assert failure(lambda: self.exe(A, bb=B)).hint == "did you mean `b`?"
        assert "twice" in failure(lambda: self.exe(A, B, a=A)).message

    def test_array_protocol(self):
        class Wrapped:
            def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
                return A

        np.testing.assert_array_equal(self.exe(Wrapped(), B), A + B)

        class Elsewhere:
            def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
                raise TypeError("data is on another device")

        assert "another device" in failure(lambda: self.exe(Elsewhere(), B)).message


def test_bf16_bits_are_refused(copy_program: Callable[..., Program]):
    exe = load_program(copy_program("bf16", "uint16_t", (2,), 2))
    for bits in (np.zeros(2, np.uint16), np.zeros(2, "V2")):
        error = failure(lambda bits=bits: exe(bits))
        assert error.kind == "wrong-dtype"
        assert "view(ml_dtypes.bfloat16)" in error.hint


class TestSymbolicSizes:
    @pytest.fixture(autouse=True)
    def load(self, normalize_program: Callable[..., Program]):
        self.exe = load_program(normalize_program())

    @pytest.mark.parametrize("rows", [0, 1, 5, 8])
    def test_values(self, rows: int):
        x = np.arange(1, rows * 4 + 1, dtype=np.float32).reshape(rows, 4)
        expected = x / x.sum(1, keepdims=True)
        np.testing.assert_allclose(self.exe(x), expected, rtol=1e-6)

    def test_bounds(self):
        error = failure(lambda: self.exe(np.zeros((9, 4), np.float32)))
        assert error.kind == "size-out-of-bounds"
        assert error.message == "size `n` is 9 along axis 0 of `x`; it may be 0 to 8"

    def test_other_extents(self):
        error = failure(lambda: self.exe(np.zeros((3, 5), np.float32)))
        assert error.kind == "wrong-shape"
        assert error.message == "input `x` has shape [3, 5]; expected float32[n, 4]"
        assert error.hint == "that is [3, 4] with n = 3"

    def test_a_size_may_be_given_and_must_agree(self):
        x = np.ones((2, 4), np.float32)
        np.testing.assert_array_equal(self.exe(x, n=2), self.exe(x))
        error = failure(lambda: self.exe(x, n=3))
        assert error.kind == "size-mismatch"
        assert error.message == "size `n` is given as 3 but 2 along axis 0 of `x`"

    def test_workspace_is_reused(self):
        x = np.ones((2, 4), np.float32)
        self.exe(x)
        pool = self.exe._workspaces
        assert pool is not None
        first = pool.take()
        assert first.ctypes.data % 64 == 0
        pool.give(first)
        self.exe(x)
        assert pool.take() is first


def expression_program(size: type) -> Program:
    n = size("n")
    plan = Plan(
        "fill",
        symbols=(Symbol("n", 1, 4), Symbol("m", 1, 10)),
        inputs=(Buffer("in0", "x", "i64", (n, size("n", 2))),),
        outputs=(Buffer("out0", "out0", "i64", (size("m", 3),)),),
        kernels=(KernelCall("e", "fill", ("out0",), 1, 0, 0, ("n", "m")),),
    )
    source = """#include <stdint.h>
void fill(int64_t n, int64_t m, const int64_t *x, int64_t *out) {
  (void)x;
  for (int64_t i = 0; i < 3 * m; i++) out[i] = n * 100 + m;
}
"""
    return Program(source, "c", (plan,), {})


def test_free_sizes_and_expressions(symbol_size: type):
    exe = load_program(expression_program(symbol_size))
    x = np.zeros((2, 4), np.int64)
    assert exe(x, m=2).tolist() == [202] * 6
    assert exe(x, m=np.int32(1)).tolist() == [201] * 3
    assert failure(lambda: exe(x)).kind == "missing-size"
    assert failure(lambda: exe(x)).hint == "pass it by name: m=N, 1 to 10"
    assert failure(lambda: exe(x, m=11)).message == "size `m` is given as 11; it may be 1 to 10"
    for bad in (2.0, True, "2"):
        assert failure(lambda bad=bad: exe(x, m=bad)).kind == "wrong-type"
    wrong = failure(lambda: exe(np.zeros((2, 5), np.int64), m=1))
    assert wrong.message == "input `x` has shape [2, 5]; expected int64[n, 2*n]"


ALIAS_SOURCE = """
void both(const float *restrict x, float *restrict out) {
  for (int i = 0; i < 6; i++) out[i] = x[i] * 2.0f;
}
const float const0[2] = {7.0f, 8.0f};
"""


def alias_program() -> Program:
    plan = Plan(
        "both",
        inputs=(Buffer("in0", "x", "f32", (2, 3)),),
        constants=(Buffer("const0", "const0", "f32", (2,)),),
        outputs=(
            Buffer("out0", "out0", "f32", (6,), alias="in0"),
            Buffer("out1", "out1", "f32", (2, 3), alias="out2"),
            Buffer("out2", "out2", "f32", (2, 3)),
            Buffer("out3", "out3", "f32", (2,), alias="const0"),
            Buffer("out4", "out4", "f32", (3, 2), alias="out0"),
        ),
        kernels=(KernelCall("e_2_3", "both", ("in0", "out2"), 1, 6, 48),),
    )
    return Program(ALIAS_SOURCE, "c", (plan,), {})


def test_outputs_that_are_other_buffers():
    exe = load_program(alias_program())
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = exe(x)
    assert isinstance(results, tuple)
    same, doubled_again, doubled, constant, reshaped = results
    np.testing.assert_array_equal(same, x.ravel())
    np.testing.assert_array_equal(doubled, x * 2)
    np.testing.assert_array_equal(doubled_again, x * 2)
    assert constant.tolist() == [7, 8]
    np.testing.assert_array_equal(reshaped, x.reshape(3, 2))
    for result in results:
        result[...] = -1
    np.testing.assert_array_equal(x, np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(exe(x)[2], x * 2)


def test_run_into(add_program: Program):
    exe = load_program(add_program)
    out = np.empty((4, 8), np.float32)
    exe.run_into([out], [A, B])
    np.testing.assert_array_equal(out, A + B)
    wide = np.zeros((4, 16), np.float32)
    exe.run_into([wide[:, ::2]], [A, B])
    np.testing.assert_array_equal(wide[:, ::2], A + B)
    assert not wide[:, 1::2].any()


def test_run_into_an_input(add_program: Program):
    exe = load_program(add_program)
    # A shift by one element: a kernel that wrote in place would read what it wrote.
    storage = np.arange(33, dtype=np.float32)
    source, target = storage[:32].reshape(4, 8), storage[1:].reshape(4, 8)
    expected = source + B
    exe.run_into([target], [source, B])
    np.testing.assert_array_equal(target, expected)


def test_run_into_with_aliases_and_shared_outputs():
    exe = load_program(alias_program())
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    before = x.copy()
    outs = [np.empty(6, np.float32), x, np.empty((2, 3), np.float32)]
    outs += [np.empty(2, np.float32), np.empty((3, 2), np.float32)]
    exe.run_into(outs, [x])
    np.testing.assert_array_equal(outs[0], before.ravel())
    np.testing.assert_array_equal(x, before * 2)
    np.testing.assert_array_equal(outs[4], before.reshape(3, 2))


def test_run_into_refusals(add_program: Program):
    exe = load_program(add_program)
    out = np.empty((4, 8), np.float32)
    read_only = out.copy()
    read_only.flags.writeable = False
    kinds = {
        "wrong-output-count": [],
        "wrong-output-shape": [out.T],
        "wrong-dtype": [out.astype(np.float64)],
        "byte-order": [out.astype(">f4")],
        "read-only-output": [read_only],
        "wrong-type": [[0.0]],
    }
    for kind, outputs in kinds.items():
        assert failure(lambda outputs=outputs: exe.run_into(outputs, [A, B])).kind == kind


def test_inputs_never_read_still_have_a_parameter():
    source = "void f(const float *a, const float *b, float *out) { (void)a; *out = *b; }"
    plan = Plan(
        "f",
        inputs=(Buffer("in0", "a", "f32", ()), Buffer("in1", "b", "f32", ())),
        outputs=(Buffer("out0", "out0", "f32", ()),),
    )
    exe = load_program(Program(source, "c", (plan,), {}))
    assert exe(np.float32(1), np.float32(2)) == 2


def test_plan_names(add_program: Program):
    plan = add_program.plans[0]
    two = dataclasses.replace(add_program, plans=(plan, dataclasses.replace(plan, name="other")))
    assert failure(lambda: load_program(two)).hint == "name one of: add, other"
    assert failure(lambda: load_program(two, "third")).kind == "unknown-plan"
    np.testing.assert_array_equal(load_program(two, "add")(A, B), A + B)
    assert failure(lambda: load_program(two, "other")).kind == "missing-symbol"
    cuda = dataclasses.replace(add_program, language="cuda")
    assert failure(lambda: load_program(cuda)).kind == "wrong-language"


def test_memory_that_no_machine_has(copy_program: Callable[..., Program]):
    program = copy_program("f32", "float", (), 1)
    plan = program.plans[0]
    for shape, kind in (((1 << 50,), "out-of-memory"), ((1 << 62, 1 << 62), "too-large")):
        huge = dataclasses.replace(plan, outputs=(Buffer("out0", "out0", "f32", shape),))
        exe = load_program(dataclasses.replace(program, plans=(huge,)))
        assert failure(lambda exe=exe: exe(np.float32(1))).kind == kind


def test_calls_from_many_threads(normalize_program: Callable[..., Program]):
    exe = load_program(normalize_program())
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).random((8, 4), np.float32) + 1
        expected = exe(x)
        for _ in range(300):
            if not np.array_equal(exe(x), expected):
                wrong.append(seed)
        if not np.allclose(expected, x / x.sum(1, keepdims=True), rtol=1e-5):
            wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _call_in_child(exe: Callable[..., np.ndarray], queue: multiprocessing.Queue) -> None:
    fresh = "void f(const float *a, float *out) { *out = *a + 1.0f; }"
    plan = Plan(
        "f", (), (Buffer("in0", "a", "f32", ()),), (), (), (Buffer("out0", "o", "f32", ()),)
    )
    queue.put((exe(A, B)[1, 1], load_program(Program(fresh, "c", (plan,), {}))(np.float32(4))[()]))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_calls_and_compiles(add_program: Program):
    exe = load_program(add_program)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_call_in_child, args=(exe, queue))
    child.start()
    assert queue.get(timeout=30) == (9.5, 5.0)
    child.join(30)
    assert child.exitcode == 0
