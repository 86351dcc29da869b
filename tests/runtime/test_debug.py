from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import numpy as np
import pytest

from uopc.lowering.plan import Program
from uopc.runtime.debug import KernelTime, kernel_line, kernel_source, run_line
from uopc.runtime.executable import Executable, load_program
from uopc.runtime.stepper import with_visible_kernels

X = np.arange(1, 21, dtype=np.float32).reshape(5, 4)
RUN = r"normalize: 2 kernels, schedule \d+\.\d ms, run \d+\.\d ms"
KERNEL = r"  (r_n|e_n_4) +\d+\.\d{3} ms +\d+\.\d\d GFLOP/s"
AGAIN = KERNEL + r"  \(again: \d+\.\d{3} ms\)"


def said(capfd: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capfd.readouterr()
    assert out == ""
    return err.splitlines()


def run(exe: Executable) -> None:
    np.testing.assert_allclose(exe(X), X / X.sum(1, keepdims=True), rtol=1e-6)


@pytest.fixture
def load(normalize_program: Callable[[bool], Program]) -> Callable[[int], Executable]:
    return lambda level: load_program(
        normalize_program(True), debug=level, debug_program=lambda: normalize_program(False)
    )


def test_level_0(load: Callable[[int], Executable], capfd: pytest.CaptureFixture[str]):
    run(load(0))
    assert said(capfd) == []


def test_level_1(load: Callable[[int], Executable], capfd: pytest.CaptureFixture[str]):
    run(load(1))
    (line,) = said(capfd)
    assert re.fullmatch(RUN, line)


def test_level_2(load: Callable[[int], Executable], capfd: pytest.CaptureFixture[str]):
    run(load(2))
    first, second, last = said(capfd)
    assert re.fullmatch(KERNEL, first)
    assert re.fullmatch(KERNEL, second)
    assert first.startswith("  r_n ")
    assert second.startswith("  e_n_4 ")
    assert re.fullmatch(RUN, last)


def test_level_3(load: Callable[[int], Executable], capfd: pytest.CaptureFixture[str]):
    exe = load(3)
    out = np.empty((5, 4), np.float32)
    exe.run_into([out], [X])
    np.testing.assert_allclose(out, X / X.sum(1, keepdims=True), rtol=1e-6)
    lines = said(capfd)
    assert len(lines) == 3
    assert all(re.fullmatch(AGAIN, line) for line in lines[:2])


def test_level_4_prints_the_source_once(
    load: Callable[[int], Executable], capfd: pytest.CaptureFixture[str]
):
    exe = load(4)
    run(exe)
    text = "\n".join(said(capfd))
    assert text.startswith("/* r_n: reduce sum */\nvoid row_sum(int64_t n, ")
    assert "/* e_n_4: div */\nvoid divide(int64_t n, " in text
    assert "void normalize(" not in text
    run(exe)
    assert len(said(capfd)) == 3


def test_kernels_that_cannot_be_called(
    normalize_program: Callable[[bool], Program], capfd: pytest.CaptureFixture[str]
):
    exe = load_program(normalize_program(True), debug=2)
    run(exe)
    note, line = said(capfd)
    assert note == "  (no line a kernel: the compiled code has no visible 'row_sum')"
    assert re.fullmatch(RUN, line)


def test_kernels_of_the_program_itself(
    normalize_program: Callable[[bool], Program], capfd: pytest.CaptureFixture[str]
):
    run(load_program(normalize_program(False), debug=2))
    assert len(said(capfd)) == 3


def test_kernels_of_a_program_of_several_units(
    normalize_program: Callable[[bool], Program], capfd: pytest.CaptureFixture[str]
):
    """Its units hide the kernels from outside: the one file has to be compiled."""
    hidden = normalize_program(True)
    source = f"{hidden.source}\n/* of units */\n"  # not the source that another test has loaded
    program = dataclasses.replace(hidden, source=source, units=(source, "int more_of_it;"))
    visible = with_visible_kernels(program)
    run(load_program(program, debug=2, debug_program=lambda: visible))
    assert len(said(capfd)) == 3


def test_the_environment_sets_the_level(
    normalize_program: Callable[[bool], Program],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("UOPC_DEBUG", "1")
    run(load_program(normalize_program(True)))
    assert len(said(capfd)) == 1


def test_a_kernel_that_updates_in_place_runs_once(capfd: pytest.CaptureFixture[str]):
    from uopc.lowering.plan import Buffer, KernelCall, Plan

    source = """
const float const0[1] = {3.0f};
void start(const float *x, const float *c, float *t) { *t = *x + *c; }
void twice(const float *in, float *out) { *out = *in * 2.0f; }
void f(const float *x, float *out, unsigned char *work) {
  start(x, const0, (float *)work);
  twice((float *)work, (float *)work);
  *out = *(float *)work;
}
void finish(const float *t, float *out) { *out = *t; }
"""
    scalar = ("f32", ())
    plan = Plan(
        "f",
        inputs=(Buffer("in0", "x", *scalar),),
        constants=(Buffer("const0", "const0", *scalar),),
        temps=(Buffer("tmp0", "tmp0", *scalar, offset=0),),
        outputs=(Buffer("out0", "out0", *scalar), Buffer("out1", "out1", *scalar, alias="out0")),
        kernels=(
            KernelCall("e", "start", ("in0", "const0", "tmp0"), 1, 1, 12),
            KernelCall("e", "twice", ("tmp0", "tmp0"), 1, 1, 8),
            KernelCall("e", "finish", ("tmp0", "out1"), 1, 0, 8),
        ),
        workspace_bytes=64,
    )
    program = Program(source, "c", (plan,), {})
    for level in (0, 3):
        assert [float(value) for value in load_program(program, debug=level)(np.float32(1))] == [
            8,
            8,
        ]
    lines = said(capfd)
    assert ["again" in line for line in lines] == [True, False, True, False]


def test_names_cannot_write_to_the_terminal():
    assert "\033" not in run_line("\033[2J\n", 1, 0, 0)
    assert "\n" not in kernel_line(KernelTime("a\nb", 1, 1.0))
    assert run_line("f", 1, 0.0, 0.0) == "f: 1 kernel, schedule 0.0 ms, run 0.0 ms"


def test_work_before_a_run_is_told_once(
    load: Callable[[int], Executable], capfd: pytest.CaptureFixture[str]
):
    exe = load(1)
    exe.schedule_seconds += 7.0
    run(exe)
    run(exe)
    lines = said(capfd)
    first, second = (float(line.split("schedule ")[1].split()[0]) for line in lines)
    assert 7000 <= first < 9000
    assert second < 1000


def test_kernel_source_finds_the_definition():
    source = (
        "#include <math.h>\nstatic void k1(int);\n\n/* a\n * b */\nstatic inline\n"
        "void k1(int a) {\n  if (a) {\n  }\n}\n\nvoid k10(int a) {\n  k1(a);\n}\n"
    )
    expected = "/* a\n * b */\nstatic inline\nvoid k1(int a) {\n  if (a) {\n  }\n}"
    assert kernel_source(source, "k1") == expected
    assert kernel_source(source, "k10") == "void k10(int a) {\n  k1(a);\n}"
    assert kernel_source(source, "k2") == ""
    only_called = "void other(void) {\n  k1(1);\n}\n"
    assert kernel_source(only_called, "k1") == ""


def test_plans_of_the_debug_program_are_found_by_name(
    normalize_program: Callable[[bool], Program], capfd: pytest.CaptureFixture[str]
):
    def other() -> Program:
        program = normalize_program(False)
        (plan,) = program.plans
        return dataclasses.replace(program, plans=(dataclasses.replace(plan, name="another"), plan))

    run(load_program(normalize_program(True), debug=2, debug_program=other))
    assert len(said(capfd)) == 3
