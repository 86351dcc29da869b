"""Programs in scf, memref and func, as anyone might write them: printed, compiled and run."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uopc.dialects.locations import parse_text
from uopc.dialects.upstream_fixes import install
from uopc.lowering.c import emit_c, emit_header

install()

TEXT = (Path(__file__).parent / "programs.mlir").read_text()


@pytest.fixture(scope="module")
def source() -> str:
    return emit_c(parse_text(TEXT, "programs.mlir")).text


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        ("gcc", ["-O3"]),
        ("clang", ["-O0", "-fsanitize=undefined", "-fsanitize-trap=undefined"]),
        ("g++", ["-O2", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]),
        ("clang++", ["-O2"]),
    ],
)
def test_programs(build: Any, source: str, compiler: str, flags: list[str]) -> None:
    run = build(source, compiler, *flags)
    loops(run)
    memory(run)
    integers(run)


def loops(run: Any) -> None:
    import ctypes

    o = np.zeros(3, np.int32)
    for n, want in ((0, [1, 2, 3]), (1, [2, 3, 1]), (2, [3, 1, 2]), (5, [3, 1, 2])):
        run("swap", n, o)
        assert o.tolist() == want
    assert [run("fibonacci", n, restype=ctypes.c_int64) for n in (0, 1, 10, 94)] == [
        *(0, 1, 55),
        19740274219868223167 - 2**64,
    ]
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    out = np.zeros(2, np.float32)
    run("nest", x, out)
    acc = np.float32(0)
    before = acc
    for row in x:
        before = acc
        for v in row:
            acc = np.float32(acc + v)
        acc = np.float32(acc * np.float32(2))
    assert out.tolist() == [acc, before]
    assert run("collatz", 27, restype=ctypes.c_int64) == 111
    assert [run("even", ctypes.c_int32(n), restype=ctypes.c_uint8) for n in range(4)] == [
        1,
        0,
        1,
        0,
    ]
    assert [run("choose", k, restype=ctypes.c_int32) for k in (2, -5, 0)] == [20, 50, -1]
    top = 2**63 - 1
    for bounds in ((0, 10, 3), (top - 5, top, 2), (-(2**63), top, 2**62), (5, 5, 1), (0, 7, top)):
        assert run("steps", *bounds, restype=ctypes.c_int64) == len(range(*bounds)), bounds
    for hi in (-128, 0, 126, 127):
        got = run("narrow", ctypes.c_int8(hi), restype=ctypes.c_int32)
        assert got == sum(range(-128, hi, 3))
    grid = np.arange(15, dtype=np.int32).reshape(3, 5) - 20
    two = np.zeros(2, np.int32)
    run("total", grid, two)
    assert two.tolist() == [int(grid.sum()), int(grid.max())]


def memory(run: Any) -> None:
    import ctypes

    x = np.array([1, 2, 3, 4], np.float32)
    run("order", x)
    assert x.tolist() == [2, 1, 1, 4]
    d = np.zeros(2)
    run("use_pair", d)
    assert d.tolist() == [0.1, 5.0]
    x = np.arange(48, dtype=np.float32).reshape(6, 8)
    for n in (1, 3, 5):
        o = np.zeros(40, np.float32)
        run("shapes", x, n, o)
        want = np.zeros(40, np.float32)
        want[:6] = x[1:6:2, 2:8:3].ravel()
        want[8:12] = x[n, 3], 12, 4 + 1 + 16, x[5, 5]
        want[12 : 12 + n] = x[:n, 3]
        want[39] = x[n - 1, 0]
        assert np.array_equal(o, want), (n, o, want)
    o, s = np.zeros(10, np.float32), np.zeros(2, np.int64)
    run("constants", o, s)
    odd = np.array([np.inf, -np.inf, np.nan, -0.0], np.float32)
    table = np.array([1.0, -0.5, 0.1, 1e-5, 3e38, 0.0], np.float32)
    assert np.array_equal(o.view(np.uint32), np.concatenate([table, odd]).view(np.uint32))
    assert s.tolist() == [-(2**63), 7]
    run("constants", o, s)
    assert s.tolist() == [-(2**63), 14]
    x, k, o = (
        np.arange(10, dtype=np.float32),
        np.array([4, 0, 3, 1], np.int32),
        np.zeros(4, np.float32),
    )
    run("gather", x, k, o)
    assert o.tolist() == [8, 0, 6, 2]
    b, w, p = np.array([0, 127, 128, 255], np.uint8), np.zeros(4, np.int32), np.zeros(4, np.uint8)
    run("unsigned_", b, w, p)
    assert w.tolist() == [0, 127, 128, 255] and p.tolist() == [0, 254, 0, 254]
    a, c = (np.zeros(2, np.float32) for _ in range(2))
    run("pick_buffer", ctypes.c_uint8(1), a, c)
    run("pick_buffer", ctypes.c_uint8(0), a, c)
    assert a.tolist() == c.tolist() == [9, 0]
    m, n = np.zeros(1, np.int32), np.zeros(1, np.int32)
    run("ping_pong", 5, m, n)
    assert (m[0], n[0]) == (4, 5)
    x, o = np.arange(5, dtype=np.float32), np.zeros(1, np.float32)
    run("last_of", 5, x, o)
    assert o.tolist() == [4.0]
    work, out = np.zeros(16, np.float32), np.zeros(2, np.float32)
    run("area", work, out)
    assert out.tolist() == [2.5, -1.0] and work[7] == -1.0


def integers(run: Any) -> None:
    """No widening before the wrap, no undefined overflow for a compiler to exploit."""
    import ctypes

    big = 2**31 - 1
    int32 = ctypes.c_int32
    assert run("overflow", int32(big), int32(big), restype=ctypes.c_int64) == -2
    assert run("thirds", int32(2**30), restype=int32) == -(2**30) // 3
    assert run("bytes", ctypes.c_int8(-128), restype=ctypes.c_int16) == 0
    assert run("region", int32(21), restype=int32) == 42


def test_address_sanitizer(source: str, tmp_path: Path) -> None:
    """Buffers of exactly the stated size, from the heap: one byte past the end would be seen."""
    main = """
#include <stdlib.h>
#include <stdio.h>
int main(void)
{
    float *x = malloc(48 * sizeof(float)), *o = malloc(40 * sizeof(float));
    int32_t *k = malloc(4 * sizeof(int32_t));
    int8_t *w = aligned_alloc(64, 64);
    float *two = malloc(2 * sizeof(float));
    for (int i = 0; i < 48; i++)
        x[i] = (float)i;
    for (int i = 0; i < 40; i++)
        o[i] = 0;
    for (int64_t n = 1; n < 6; n++)
        shapes(x, n, o);
    k[0] = 4; k[1] = 0; k[2] = 3; k[3] = 23;
    gather(x, k, o);
    area(w, two);
    nest(x, two);
    printf("%g %g\\n", (double)o[3], (double)o[39]);
    free(x); free(o); free(k); free(w); free(two);
    return 0;
}
"""
    path = tmp_path / "main.c"
    path.write_text(source + main)
    program = tmp_path / "main"
    command = ["gcc", "-std=c11", "-g", "-O1", "-fsanitize=address,undefined", "-Wall", "-Wextra"]
    command += ["-fno-sanitize-recover=all", "-o", str(program), str(path), "-lm"]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:3000]
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "46 32\n", "")


def test_needs_only_libm(build: Any, source: str, tmp_path: Path) -> None:
    """What the file asks of a linker: heap functions because memref.alloc is in it, no more."""
    build(source, "gcc", "-O2")
    object_file = next(tmp_path.glob("*.so"))
    names = subprocess.run(["nm", "-u", str(object_file)], capture_output=True, text=True).stdout
    wanted = set(re.findall(r"U (\w+)", names)) - {"__cxa_finalize", "__stack_chk_fail"}
    assert wanted <= {"malloc", "aligned_alloc", "free", "abort", "memset", "memcpy"}, wanted


def test_header_stands_alone(tmp_path: Path, source: str) -> None:
    header = emit_header(parse_text(TEXT))
    (tmp_path / "programs.h").write_text(header)
    (tmp_path / "use.c").write_text('#include "programs.h"\n#include "programs.h"\n')
    (tmp_path / "all.c").write_text('#include "programs.h"\n' + source)
    for name in ("use.c", "all.c"):
        for compiler in (["gcc", "-std=c11"], ["clang++", "-x", "c++", "-std=c++17"]):
            if not shutil.which(compiler[0]):
                continue
            command = [*compiler, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
            done = subprocess.run([*command, str(tmp_path / name)], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[:2000]
    assert "struct pair_results" in header and "static" not in header
