"""How long a compile takes: 5,000 tensor ops in 50 equal layers, from text to C.

    python benchmarks/compile_time.py [--layers N] [--pipeline NAME]

Prints the time of parsing, of each pass and of the emitter, the best of three runs each, the
total, and the total without the parse. The goals are 5 s and 2 s.
"""

from __future__ import annotations

import argparse
import time

from xdsl.dialects.builtin import ModuleOp

from uopc.dialects.locations import parse_text
from uopc.dialects.registry import make_context
from uopc.dialects.verification import verify_module
from uopc.lowering.c import emit_c
from uopc.passes.manager import garbage_collector_off, run_passes
from uopc.passes.pipelines import pipeline_text
from uopc.passes.registry import pass_factories
from uopc.passes.resolve import resolve_pipeline

ROWS, COLUMNS = 32, 64


def layer(lines: list[str], number: int, x: str) -> str:
    """One layer of about 100 ops: a normalized, twice mixed and gated residual block."""
    t2 = f"tensor<{ROWS}x{COLUMNS}xf32>"
    t3 = f"tensor<{ROWS}x{COLUMNS}x{COLUMNS}xf32>"
    count = 0

    def op(text: str) -> str:
        nonlocal count
        count += 1
        name = f"%l{number}_{count}"
        lines.append(f"  {name} = utensor.{text}")
        return name

    def binary(kind: str, a: str, b: str) -> str:
        return op(f"{kind} {a}, {b} : {t2}")

    def unary(kind: str, a: str) -> str:
        return op(f"{kind} {a} : {t2}")

    def constant(value: float) -> str:
        return op(f"constant {value} : {t2}")

    def row_sum(a: str) -> str:
        total = op(f"reduce add {a} axes [1] : {t2}")
        column = op(f"reshape {total} : tensor<{ROWS}xf32> -> tensor<{ROWS}x1xf32>")
        return op(f"expand {column} : tensor<{ROWS}x1xf32> -> {t2}")

    def product(a: str, weight: str) -> str:
        a3 = op(f"reshape {a} : {t2} -> tensor<{ROWS}x1x{COLUMNS}xf32>")
        ae = op(f"expand {a3} : tensor<{ROWS}x1x{COLUMNS}xf32> -> {t3}")
        wt = op(f"permute {weight} [1, 0] : tensor<{COLUMNS}x{COLUMNS}xf32>")
        square = f"tensor<{COLUMNS}x{COLUMNS}xf32>"
        w3 = op(f"reshape {wt} : {square} -> tensor<1x{COLUMNS}x{COLUMNS}xf32>")
        we = op(f"expand {w3} : tensor<1x{COLUMNS}x{COLUMNS}xf32> -> {t3}")
        return op(f"reduce add {op(f'mul {ae}, {we} : {t3}')} axes [2] : {t3}")

    def gelu(a: str) -> str:
        cube = binary("mul", binary("mul", a, a), a)
        inner = binary("add", a, binary("mul", cube, constant(0.044715)))
        tanh = unary("tanh", binary("mul", inner, constant(0.7978846)))
        return binary("mul", binary("mul", a, constant(0.5)), binary("add", tanh, constant(1.0)))

    scale = constant(1.0 / COLUMNS)
    centered = binary("sub", x, binary("mul", row_sum(x), scale))
    variance = binary("mul", row_sum(binary("mul", centered, centered)), scale)
    inverse = unary("rsqrt", binary("add", variance, constant(0.001)))
    y = binary("mul", centered, inverse)
    y = op(f"stage contiguous {y} : {t2}")
    h = op(f"stage contiguous {gelu(product(y, '%w1'))} : {t2}")
    h = op(f"stage contiguous {gelu(product(h, '%w2'))} : {t2}")
    while count < 99:
        h = binary("add", h, binary("mul", h, constant(0.125)))
    return op(f"stage contiguous {binary('add', x, h)} : {t2}")


def program(layers: int) -> str:
    """The text of the whole function."""
    lines: list[str] = []
    x = "%x"
    for number in range(layers):
        x = layer(lines, number, x)
    t2, square = f"tensor<{ROWS}x{COLUMNS}xf32>", f"tensor<{COLUMNS}x{COLUMNS}xf32>"
    head = f"func.func @network(%x: {t2}, %w1: {square}, %w2: {square}) -> {t2} {{"
    return "\n".join([head, *lines, f"  func.return {x} : {t2}", "}"])


def measure(text: str, pipeline: str) -> tuple[list[tuple[str, float]], int, int]:
    """The seconds of each step of one compile, the number of ops and the length of the C."""
    steps: list[tuple[str, float]] = []

    def timed(name: str, start: float) -> None:
        steps.append((name, time.perf_counter() - start))

    with garbage_collector_off():
        start = time.perf_counter()
        module: ModuleOp = parse_text(text)
        timed("parse", start)
        ops = sum(1 for _ in module.walk())
        start = time.perf_counter()
        verify_module(module)
        timed("verify", start)
        context = make_context()
        for module_pass in resolve_pipeline(pipeline, pass_factories()):
            start = time.perf_counter()
            run_passes(context, module, [module_pass], verify=False)
            timed(module_pass.name, start)
        start = time.perf_counter()
        source = emit_c(module)
        timed("emit C", start)
    return steps, ops, len(source.text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time a compile of many tensor ops.")
    parser.add_argument("--layers", type=int, default=50)
    parser.add_argument("--pipeline", default=pipeline_text("uopc-cpu"))
    options = parser.parse_args()
    text = program(options.layers)
    runs = [measure(text, options.pipeline) for _ in range(3)]
    steps, ops, length = runs[0]
    best = [min(run[0][k][1] for run in runs) for k in range(len(steps))]
    print(f"{ops:,} ops in {options.layers} layers; {length:,} characters of C; best of 3, ms")
    for (name, _), seconds in zip(steps, best, strict=True):
        print(f"  {name:28s}{seconds * 1e3:9.1f}")
    print(f"  {'total':28s}{sum(best) * 1e3:9.1f}   (goal 5000)")
    print(f"  {'without the parse':28s}{sum(best[1:]) * 1e3:9.1f}   (goal 2000)")


if __name__ == "__main__":
    main()
