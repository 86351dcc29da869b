"""Every integer op at edge values: C of two compilers against Python's unbounded integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, func, math, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    i1,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from uopc.lowering.c import emit_c

INDEX = IndexType()
WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
NUMPY = {1: np.uint8, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def edges(bits: int) -> list[int]:
    if bits == 1:
        return [0, -1]
    top = 1 << (bits - 1)
    near = [0, 1, -1, 2, -2, 3, -3, 5, 7, -7, bits - 1, bits, bits + 1, 31, 32, 33, 64, 100, -100]
    far = [top - 1, -top, -top + 1, top - 2, top // 2, -top // 2, top // 3]
    return sorted({v for v in near + far if -top <= v < top})


def wrap(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted(a: int, b: int, n: int, kind: str) -> int:
    amount = unsigned(b, n)
    if kind == "shl":
        return a << amount if amount < n else 0
    if kind == "shru":
        return unsigned(a, n) >> amount if amount < n else 0
    return a >> min(amount, n - 1)


def power(a: int, b: int, n: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << n)
    return -1 if a == 0 else 1 if a == 1 else (-1 if b % 2 else 1) if a == -1 else 0


Reference = Callable[[int, int, int], int]
U = unsigned
BINARY: dict[type[Any], Reference] = {
    arith.AddiOp: lambda a, b, n: a + b,
    arith.SubiOp: lambda a, b, n: a - b,
    arith.MuliOp: lambda a, b, n: a * b,
    arith.DivSIOp: lambda a, b, n: truncated(a, b) if b else -1,
    arith.DivUIOp: lambda a, b, n: U(a, n) // U(b, n) if b else -1,
    arith.FloorDivSIOp: lambda a, b, n: a // b if b else -1,
    arith.CeilDivSIOp: lambda a, b, n: -(-a // b) if b else -1,
    arith.CeilDivUIOp: lambda a, b, n: -(-U(a, n) // U(b, n)) if b else -1,
    arith.RemSIOp: lambda a, b, n: a - b * truncated(a, b) if b else a,
    arith.RemUIOp: lambda a, b, n: U(a, n) % U(b, n) if b else a,
    arith.AndIOp: lambda a, b, n: a & b,
    arith.OrIOp: lambda a, b, n: a | b,
    arith.XOrIOp: lambda a, b, n: a ^ b,
    arith.ShLIOp: lambda a, b, n: shifted(a, b, n, "shl"),
    arith.ShRUIOp: lambda a, b, n: shifted(a, b, n, "shru"),
    arith.ShRSIOp: lambda a, b, n: shifted(a, b, n, "shr"),
    arith.MinSIOp: lambda a, b, n: min(a, b),
    arith.MaxSIOp: lambda a, b, n: max(a, b),
    arith.MinUIOp: lambda a, b, n: min(U(a, n), U(b, n)),
    arith.MaxUIOp: lambda a, b, n: max(U(a, n), U(b, n)),
    math.IPowIOp: power,
}
COMPARE: list[Reference] = [
    *(lambda a, b, n: a == b, lambda a, b, n: a != b),
    *(lambda a, b, n: a < b, lambda a, b, n: a <= b),
    *(lambda a, b, n: a > b, lambda a, b, n: a >= b),
    *(lambda a, b, n: U(a, n) < U(b, n), lambda a, b, n: U(a, n) <= U(b, n)),
    *(lambda a, b, n: U(a, n) > U(b, n), lambda a, b, n: U(a, n) >= U(b, n)),
]
UNARY: dict[type[Any], Callable[[int, int], int]] = {
    math.AbsIOp: lambda a, n: abs(a),
    math.CountLeadingZerosOp: lambda a, n: n - U(a, n).bit_length(),
    math.CountTrailingZerosOp: lambda a, n: (U(a, n) & -U(a, n)).bit_length() - 1 if a else n,
    math.CtPopOp: lambda a, n: U(a, n).bit_count(),
}


def type_of(name: str) -> Attribute:
    return INDEX if name == "index" else IntegerType(WIDTHS[name])


def loop_function(
    name: str,
    inputs: list[Attribute],
    outputs: list[Attribute],
    body: Callable[[Block, list[SSAValue]], list[SSAValue]],
) -> func.FuncOp:
    """func @name(n, inputs…, outputs…): outputs[i] = body(inputs[i])."""
    memrefs = [MemRefType(t, [DYNAMIC_INDEX]) for t in (*inputs, *outputs)]
    function = func.FuncOp(name, ([INDEX, *memrefs], []))
    entry = function.body.block
    zero = arith.ConstantOp(IntegerAttr(0, INDEX))
    one = arith.ConstantOp(IntegerAttr(1, INDEX))
    inner = Block(arg_types=[INDEX])
    counter = inner.args[0]
    loads = [memref.LoadOp.get(a, [counter]) for a in entry.args[1 : 1 + len(inputs)]]
    inner.add_ops(loads)
    for value, target in zip(
        body(inner, [x.res for x in loads]), entry.args[1 + len(inputs) :], strict=True
    ):
        inner.add_op(memref.StoreOp.get(value, target, [counter]))
    inner.add_op(scf.YieldOp())
    loop = scf.ForOp(zero, entry.args[0], one, [], Region(inner))
    entry.add_ops([zero, one, loop, func.ReturnOp()])
    return function


def binary_op(cls: Any, a: Any, b: Any) -> Any:
    return cls(a, b) if cls is not math.IPowIOp else cls.create(
        operands=[SSAValue.get(a), SSAValue.get(b)], result_types=[SSAValue.get(a).type]
    )  # fmt: skip


def added(block: Block, *ops: Any) -> SSAValue:
    block.add_ops(ops)
    return ops[-1].results[0]


def make_module() -> ModuleOp:
    functions: list[func.FuncOp] = []
    for name in WIDTHS:
        t = type_of(name)
        for cls in BINARY:
            short = cls.name.split(".")[1]
            functions.append(loop_function(
                f"{short}_of_{name}", [t, t], [t],
                lambda b, v, cls=cls: [added(b, binary_op(cls, *v))]))  # fmt: skip
        for predicate in range(10):
            functions.append(loop_function(
                f"cmp{predicate}_of_{name}", [t, t], [i1],
                lambda b, v, k=predicate: [added(b, arith.CmpiOp(*v, k))]))  # fmt: skip
        for cls in UNARY:
            short = cls.name.split(".")[1]
            functions.append(loop_function(
                f"{short}_of_{name}", [t], [t],
                lambda b, v, cls=cls: [added(b, cls(v[0]))]))  # fmt: skip
        for cls in (arith.MulUIExtendedOp, arith.MulSIExtendedOp, arith.AddUIExtendedOp):
            if name == "index" and cls is arith.AddUIExtendedOp:
                continue
            short = cls.name.split(".")[1]
            out = [t, i1] if cls is arith.AddUIExtendedOp else [t, t]

            def both(block: Block, v: list[SSAValue], cls: Any = cls) -> list[SSAValue]:
                op = cls(*v)
                block.add_op(op)
                return list(op.results)

            functions.append(loop_function(f"{short}_of_{name}", [t, t], out, both))
    return ModuleOp(functions)


def pairs(bits: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    both = list(itertools.product(edges(bits), repeat=2))
    stored = [(abs(a), abs(b)) for a, b in both] if bits == 1 else both
    return (
        np.array([a for a, _ in stored], NUMPY[bits]),
        np.array([b for _, b in stored], NUMPY[bits]),
    )


Check = Callable[[str, list[Any], list[list[int]], list[int]], None]


def checker(library: Any) -> Check:
    """Call a function on arrays and compare its outputs, wrapped to their widths."""

    def check(name: str, inputs: list[Any], expected: list[list[int]], bits: list[int]) -> None:
        outputs = [np.zeros(len(want), NUMPY[k]) for want, k in zip(expected, bits, strict=True)]
        library(name, len(expected[0]), *inputs, *outputs)
        for got, want, k in zip(outputs, expected, bits, strict=True):
            wanted = np.array([wrap(v, k) if k > 1 else v & 1 for v in want], NUMPY[k])
            wrong = np.flatnonzero(got != wanted)[:5]
            assert not wrong.size, (name, [(x[wrong], got[wrong], wanted[wrong]) for x in inputs])

    return check


def short(cls: type[Any]) -> str:
    return cls.name.split(".")[1]


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        ("gcc", ["-O3"]),
        ("clang", ["-O1", "-fsanitize=undefined", "-fsanitize-trap=undefined"]),
        ("g++", ["-O0", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]),
    ],
)
def test_every_op_at_edge_values(build: Any, compiler: str, flags: list[str]) -> None:
    check = checker(build(emit_c(make_module()).text, compiler, *flags))
    for name, bits in WIDTHS.items():
        a, b = pairs(bits)
        sign = -1 if bits == 1 else 1
        ints = [(sign * int(x), sign * int(y)) for x, y in zip(a, b, strict=True)]
        for cls, reference in BINARY.items():
            want = [reference(x, y, bits) for x, y in ints]
            check(f"{short(cls)}_of_{name}", [a, b], [want], [bits])
        for k, reference in enumerate(COMPARE):
            want = [reference(x, y, bits) for x, y in ints]
            check(f"cmp{k}_of_{name}", [a, b], [want], [1])
        single = np.array([sign * v for v in edges(bits)], NUMPY[bits])
        for cls, one in UNARY.items():
            want = [one(x, bits) for x in edges(bits)]
            check(f"{short(cls)}_of_{name}", [single], [want], [bits])
        low = [x * y for x, y in ints]
        high = [x * y >> bits for x, y in ints]
        check(f"mulsi_extended_of_{name}", [a, b], [low, high], [bits, bits])
        high = [U(x, bits) * U(y, bits) >> bits for x, y in ints]
        check(f"mului_extended_of_{name}", [a, b], [low, high], [bits, bits])
        if name != "index":
            total = [x + y for x, y in ints]
            carry = [U(x, bits) + U(y, bits) >> bits for x, y in ints]
            check(f"addui_extended_of_{name}", [a, b], [total, carry], [bits, 1])


def constants(bits: int) -> list[int]:
    if bits == 1:
        return [0, -1]
    return [0, 1, -1, -3, bits, (1 << (bits - 1)) - 1, -(1 << (bits - 1))]


def constant(block: Block, value: int, t: Any) -> SSAValue:
    return added(block, arith.ConstantOp(IntegerAttr(value, t)))


def with_constants(name: str, t: Any, bits: int, make: Any, result: Any) -> list[func.FuncOp]:
    """x op c and c op x for each constant, and c op d for each pair of constants."""
    values = constants(bits)

    def one_known(block: Block, v: list[SSAValue]) -> list[SSAValue]:
        known = [constant(block, c, t) for c in values]
        return [added(block, make(*pair)) for c in known for pair in ((v[0], c), (c, v[0]))]

    outputs = [result] * (2 * len(values))
    both = func.FuncOp(f"{name}_both", ([INDEX, MemRefType(result, [DYNAMIC_INDEX])], []))
    body = both.body.block
    known = [constant(body, c, t) for c in values]
    for k, pair in enumerate(itertools.product(known, repeat=2)):
        place = constant(body, k, INDEX)
        body.add_op(memref.StoreOp.get(added(body, make(*pair)), body.args[1], [place]))
    body.add_op(func.ReturnOp())
    return [loop_function(f"{name}_one", [t], outputs, one_known), both]


@pytest.mark.parametrize(
    ("compiler", "flags", "names"),
    [
        ("gcc", ["-O1"], ["i1", "i32"]),
        (
            "g++",
            ["-O0", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"],
            ["i16", "i64"],
        ),
        ("clang", ["-O0"], ["index", "i8"]),
    ],
)
def test_folded_equals_executed(
    build: Any, compiler: str, flags: list[str], names: list[str]
) -> None:
    """An operand the emitter sees as a constant changes the text, not the value."""
    ops: list[tuple[str, Any, Reference, bool]] = [
        (short(cls), lambda a, b, cls=cls: binary_op(cls, a, b), reference, False)
        for cls, reference in BINARY.items()
    ]
    ops += [
        (f"cmp{k}", lambda a, b, k=k: arith.CmpiOp(a, b, k), reference, True)
        for k, reference in enumerate(COMPARE)
    ]
    module = ModuleOp(
        [
            function
            for name in names
            for op, make, _, is_bool in ops
            for function in with_constants(
                f"{op}_of_{name}", type_of(name), WIDTHS[name], make,
                i1 if is_bool else type_of(name),
            )
        ]
    )  # fmt: skip
    check = checker(build(emit_c(module).text, compiler, *flags))
    for name in names:
        bits = WIDTHS[name]
        values, xs = constants(bits), edges(bits)
        single = np.array([-v if bits == 1 else v for v in xs], NUMPY[bits])
        for op, _, reference, is_bool in ops:
            width = 1 if is_bool else bits
            expected = [
                [reference(*pair, bits) for pair in pairs]
                for c in values
                for pairs in ([(x, c) for x in xs], [(c, x) for x in xs])
            ]
            check(f"{op}_of_{name}_one", [single], expected, [width] * len(expected))
            want = [reference(a, b, bits) for a, b in itertools.product(values, repeat=2)]
            check(f"{op}_of_{name}_both", [], [want], [width])
