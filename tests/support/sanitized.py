"""Programs run inside a C main of their own, built with address and undefined-behaviour checks.

    results = run_sanitized(program, calls, folder)      # of each call, the outputs it wrote

Every buffer is from the heap and of exactly its size, so that one byte beyond it is seen.
"""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from uopc.lowering.plan import Buffer, Program
from uopc.runtime.buffers import numpy_dtype
from uopc.runtime.executable import chosen_plan

Array = np.ndarray[Any, np.dtype[Any]]
FLAGS = ("-march=native", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         "-ffp-contract=off")  # fmt: skip
"""Of this machine: wide vectors made of narrow ones take a compiler ten times as long."""

_HEAD = r"""
#include <stdio.h>
#include <stdlib.h>

static void *held[65536];
static int count;

static void *take(size_t bytes, size_t alignment)
{
    void *p = alignment > 1 ? aligned_alloc(alignment, bytes) : malloc(bytes);
    if (p == NULL && bytes != 0)
        exit(3);
    return held[count++] = p;
}

static void *read_in(FILE *f, size_t bytes)
{
    void *p = take(bytes, 1);
    if (fread(p, 1, bytes, f) != bytes)
        exit(4);
    return p;
}

static void write_out(FILE *f, const void *p, size_t bytes)
{
    if (fwrite(p, 1, bytes, f) != bytes)
        exit(5);
}

static void release(void)
{
    while (count > 0)
        free(held[--count]);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    if (in == NULL || out == NULL)
        return 2;
"""


class Call(NamedTuple):
    """One call of a program's plan."""

    plan: str
    inputs: Sequence[Array]
    sizes: dict[str, int]


def shape_of(buffer: Buffer, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(n if isinstance(n, int) else n.evaluate_named(sizes) for n in buffer.shape)


def run_sanitized(
    program: Program, calls: Sequence[Call], folder: Path, *, compiler: str = "gcc", level: int = 0
) -> list[list[Array | None]]:
    """Build and run; None stands for an output that is another buffer. Fails on any report."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    return run_built(program, calls, folder, [compiler, f"-O{level}", *FLAGS])


def run_built(
    program: Program,
    calls: Sequence[Call],
    folder: Path,
    command: Sequence[str],
    runner: Sequence[str] = (),
) -> list[list[Array | None]]:
    """Build with a compiler's command and run, by a runner of other machines' code if need be."""
    source = folder / "checked.c"
    source.write_text(program.source + _HEAD + _body(program, calls) + "}\n")
    words = [*command, "-std=c11", "-o", "checked", str(source), "-lm", "-pthread"]
    built = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    if "unrecognized" in built.stderr or "cannot find -l" in built.stderr:
        pytest.skip(f"{command[0]} has no sanitizers here: {built.stderr.splitlines()[-1]}")
    assert built.returncode == 0, built.stderr[:3000]
    data = b"".join(np.ascontiguousarray(a).tobytes() for c in calls for a in c.inputs)
    (folder / "in.bin").write_bytes(data)
    done = subprocess.run(
        [*runner, "./checked", "in.bin", "out.bin"], capture_output=True, text=True, cwd=folder
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[:4000]
    return _outputs(program, calls, (folder / "out.bin").read_bytes())


def _bytes(buffer: Buffer, sizes: dict[str, int]) -> int:
    return math.prod(shape_of(buffer, sizes)) * numpy_dtype(buffer.dtype).itemsize


def _body(program: Program, calls: Sequence[Call]) -> str:
    lines: list[str] = []
    for call in calls:
        plan = chosen_plan(program, call.plan)
        arguments = [str(call.sizes[s.name]) for s in plan.symbols]
        lines.append("    {")
        for k, buffer in enumerate(plan.inputs):
            lines.append(f"        void *in{k} = read_in(in, {_bytes(buffer, call.sizes)});")
            arguments.append(f"in{k}")
        written = [(k, b) for k, b in enumerate(plan.outputs) if not b.alias]
        for k, buffer in written:
            lines.append(f"        void *out{k} = take({_bytes(buffer, call.sizes)}, 1);")
            arguments.append(f"out{k}")
        if plan.workspace_bytes:
            lines.append(f"        void *workspace = take({plan.workspace_bytes}, 64);")
            arguments.append("workspace")
        lines.append(f"        {program.names.get(plan.name, plan.name)}({', '.join(arguments)});")
        for k, buffer in written:
            lines.append(f"        write_out(out, out{k}, {_bytes(buffer, call.sizes)});")
        lines.append("        release();\n    }")
    lines.append("    return fclose(out);")
    return "\n".join(lines) + "\n"


def _outputs(program: Program, calls: Sequence[Call], data: bytes) -> list[list[Array | None]]:
    results: list[list[Array | None]] = []
    position = 0
    for call in calls:
        outputs: list[Array | None] = []
        for buffer in chosen_plan(program, call.plan).outputs:
            if buffer.alias:
                outputs.append(None)
                continue
            size = _bytes(buffer, call.sizes)
            flat = np.frombuffer(data[position : position + size], numpy_dtype(buffer.dtype))
            outputs.append(flat.reshape(shape_of(buffer, call.sizes)))
            position += size
        results.append(outputs)
    assert position == len(data)
    return results
