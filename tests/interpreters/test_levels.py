"""Random programs at every level: the same values, and from linearize on the same bits as C."""

from __future__ import annotations

import random

import numpy as np
import pytest
from compiled_programs import Way, compiler, free_sizes
from random_programs import build_program
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import Interpreter

from uopc.dialects.locations import parse_text
from uopc.dialects.registry import make_context
from uopc.frontend.compile import CompileRequest, lower
from uopc.interpreters.framework import register_uopc_implementations
from uopc.interpreters.programs import programs
from uopc.passes.manager import run_passes
from uopc.passes.registry import pass_factories
from uopc.passes.resolve import resolve_pipeline
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import load_program
from uopc.tools.value_rules import first_difference, rules_of

EXACT_AFTER = ("kernelize", "dedupe-kernels", "prune-parameters", "plan-memory", "linearize")
"""Passes that change no bit, whatever the program computes."""


def program(seed):
    return build_program(random.Random(seed).randint, f"p{seed}")


def same_bits(a, b):
    unsigned = f"u{a.dtype.itemsize}"
    a, b = np.ascontiguousarray(a).reshape(-1), np.ascontiguousarray(b).reshape(-1)
    with np.errstate(all="ignore"):
        return bool(((a.view(unsigned) == b.view(unsigned)) | ((a != a) & (b != b))).all())


@pytest.mark.parametrize("pipeline", ["uopc-cpu", "uopc-cpu-native", "uopc-cuda"])
@pytest.mark.parametrize("first", range(0, 30, 10))
def test_every_level_agrees_with_the_one_before(pipeline, first):
    for seed in range(first, first + 10):
        p = program(seed)
        module = ModuleOp([p.function.clone()])
        (before,) = programs(module)
        old = before.run(p.inputs, p.sizes)
        shapes = {n: a.shape for n, a in old.results.items()}
        for module_pass in resolve_pipeline(pipeline, pass_factories()):
            copy = module.clone()
            run_passes(make_context(), module, [module_pass])
            (after,) = programs(module)
            new = after.run(p.inputs, p.sizes, shapes)
            (before,) = programs(copy)
            rules = rules_of(copy, before, module_pass.name, module)
            found = first_difference(old.results, new.results, rules)
            assert found is None, f"seed {seed}, {module_pass.name}: {found}\n{p.function}"
            if module_pass.name in EXACT_AFTER:
                for n, got in new.results.items():
                    assert same_bits(old.results[n], got), f"seed {seed}, {module_pass.name}"
            old = new


def test_loops_have_the_bits_of_c(cache_folder):
    chosen = [program(seed) for seed in range(40, 70)]
    module = ModuleOp([p.function.clone() for p in chosen])
    lowered = lower(module, CompileRequest(pipeline="uopc-cpu-native"))
    way = Way("cc", 0)
    with compiler(way.compiler):
        source = lowered.program()
        options = CompileOptions(opt_level=way.opt_level)
        names = [p.function.sym_name.data for p in chosen]
        compiled = [load_program(source, name, options=options, debug=0) for name in names]
    table = {p.name: p for p in programs(lowered.module)}
    for p, name, exe in zip(chosen, names, compiled, strict=True):
        results = exe(*p.inputs, **free_sizes(exe.plan, p.sizes))
        results = results if isinstance(results, tuple) else (results,)
        shapes = {n: r.shape for n, r in enumerate(results)}
        for n, got in table[name].run(p.inputs, p.sizes, shapes).results.items():
            assert same_bits(results[n], got), f"{name}, result {n}\n{p.function}"


# xDSL's interpreter framework.

TENSORS = """
func.func @half(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = utensor.constant 0.5 : tensor<4xf32>
  %y = utensor.mul %x, %c : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func @loops(%n: index, %x: memref<?xi32>) -> i32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %start = arith.constant 0 : i32
  %s = scf.for %i = %zero to %n step %one iter_args(%a = %start) -> (i32) {
    %v = memref.load %x[%i] : memref<?xi32>
    %b = arith.addi %a, %v : i32
    scf.yield %b : i32
  }
  memref.store %s, %x[%zero] : memref<?xi32>
  func.return %s : i32
}
"""


def test_functions_are_called_by_the_framework():
    module = parse_text(TENSORS)
    interpreter = Interpreter(module)
    register_uopc_implementations(interpreter)
    (y,) = interpreter.call_op("half", (np.arange(4, dtype=np.float32),))
    assert y.tolist() == [0, 0.5, 1, 1.5]
    x = np.array([1, 2, 3, 4], np.int32)
    assert interpreter.call_op("loops", (3, x)) == (6,)
    assert x.tolist() == [6, 2, 3, 4]


def test_single_ops_are_run_by_the_framework():
    module = parse_text(TENSORS)
    interpreter = Interpreter(module)
    register_uopc_implementations(interpreter)
    ops = {op.name: op for op in module.walk()}
    (total,) = interpreter.run_op(ops["arith.addi"], (np.int32(2**31 - 1), np.int32(1)))
    assert total == -(2**31)
    (y,) = interpreter.run_op(ops["utensor.mul"], (np.full(4, 3, np.float32),) * 2)
    assert y.tolist() == [9] * 4
