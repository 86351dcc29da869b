"""Random loop nests with loads, stores and carried values: C against the same program in Python.

What it is after: expressions that move past a store or past the end of a loop body, carried
values assigned in the wrong order, variables shared that should not be.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp, i32
from xdsl.ir import Block, Region, SSAValue

from uopc.lowering.c import emit_c

INDEX = IndexType()
SIZE = 8
BINARY = {
    arith.AddiOp: "{} + {}",
    arith.SubiOp: "{} - {}",
    arith.MuliOp: "{} * {}",
    arith.XOrIOp: "{} ^ {}",
}


class Program:
    """One random function: its IR, and the same as Python statements."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.indent = "    "
        self.budget = 60
        t = MemRefType(i32, [SIZE])
        self.function = func.FuncOp(f"f{seed}", ([t, t], []))
        block = self.function.body.block
        self.buffers = list(block.args)
        self.constants = [arith.ConstantOp(IntegerAttr(v, INDEX)) for v in range(SIZE)]
        first = arith.ConstantOp(IntegerAttr(seed % 97 - 40, i32))
        block.add_ops([*self.constants, first])
        for k, op in enumerate(self.constants):
            self.names[op.result] = str(k)
        self.names[first.result] = str(seed % 97 - 40)
        self.fill(block, [first.result], [c.result for c in self.constants], 0)
        block.add_op(func.ReturnOp())

    def say(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def name(self, value: SSAValue) -> str:
        if value not in self.names:
            self.names[value] = f"v{len(self.names)}"
        return self.names[value]

    def fill(
        self, block: Block, numbers: list[SSAValue], places: list[SSAValue], depth: int
    ) -> None:
        """Random ops at the end of a block; `numbers` and `places` are what they may use."""
        for _ in range(self.random.randint(2, 7)):
            self.budget -= 1
            choice = self.random.random()
            if choice < 0.3 or self.budget < 0:
                self.binary(block, numbers)
            elif choice < 0.5:
                self.load(block, numbers, places)
            elif choice < 0.65:
                self.store(block, numbers, places)
            elif choice < 0.75:
                self.choose(block, numbers)
            elif depth < 3:
                (self.loop if choice < 0.9 else self.branch)(block, numbers, places, depth)

    def pick(self, values: list[SSAValue]) -> SSAValue:
        """Rather a late value than an early one: most are then used once."""
        return values[-1 - min(int(self.random.expovariate(0.7)), len(values) - 1)]

    def binary(self, block: Block, numbers: list[SSAValue]) -> None:
        cls, form = self.random.choice(list(BINARY.items()))
        a, b = self.pick(numbers), self.pick(numbers)
        op = cls(a, b)
        block.add_op(op)
        self.say(f"{self.name(op.result)} = wrap({form.format(self.name(a), self.name(b))})")
        numbers.append(op.result)

    def choose(self, block: Block, numbers: list[SSAValue]) -> None:
        a, b = self.pick(numbers), self.pick(numbers)
        test = arith.CmpiOp(a, b, "slt")
        op = arith.SelectOp(test, b, a)
        block.add_ops([test, op])
        self.say(f"{self.name(op.result)} = max({self.name(a)}, {self.name(b)})")
        numbers.append(op.result)

    def load(self, block: Block, numbers: list[SSAValue], places: list[SSAValue]) -> None:
        which, place = self.random.randint(0, 1), self.pick(places)
        op = memref.LoadOp.get(self.buffers[which], [place])
        block.add_op(op)
        self.say(f"{self.name(op.res)} = m{which}[{self.name(place)}]")
        numbers.append(op.res)

    def store(self, block: Block, numbers: list[SSAValue], places: list[SSAValue]) -> None:
        which, place, value = self.random.randint(0, 1), self.pick(places), self.pick(numbers)
        block.add_op(memref.StoreOp.get(value, self.buffers[which], [place]))
        self.say(f"m{which}[{self.name(place)}] = {self.name(value)}")

    def loop(
        self, block: Block, numbers: list[SSAValue], places: list[SSAValue], depth: int
    ) -> None:
        carried = self.random.randint(0, 3)
        inits = [self.pick(numbers) for _ in range(carried)]
        body = Block(arg_types=[INDEX, *[i32] * carried])
        counter, arguments = body.args[0], list(body.args[1:])
        high = self.random.randint(0, 4)
        for argument, init in zip(arguments, inits, strict=True):
            self.say(f"{self.name(argument)} = {self.name(init)}")
        self.say(f"for {self.name(counter)} in range({high}):")
        self.indent += "    "
        inner = [*numbers, *arguments]
        self.fill(body, inner, [*places, counter], depth + 1)
        pool = inner[len(numbers) :] or inner
        yielded = [self.random.choice(pool) for _ in range(carried)]
        body.add_op(scf.YieldOp(*yielded))
        if arguments:
            left = ", ".join(map(self.name, arguments))
            self.say(f"{left} = {', '.join(map(self.name, yielded))}")
        self.say("pass")
        self.indent = self.indent[:-4]
        zero, one, end = (self.constants[k].result for k in (0, 1, high))
        op = scf.ForOp(zero, end, one, inits, Region(body))
        block.add_op(op)
        for result, argument in zip(op.results, arguments, strict=True):
            self.say(f"{self.name(result)} = {self.name(argument)}")
            numbers.append(result)

    def branch(
        self, block: Block, numbers: list[SSAValue], places: list[SSAValue], depth: int
    ) -> None:
        a, b = self.pick(numbers), self.pick(numbers)
        test = arith.CmpiOp(a, b, "sge")
        count = self.random.randint(0, 2)
        regions: list[Region] = []
        results = [f"r{len(self.names)}_{k}" for k in range(count)]
        for word in (f"if {self.name(a)} >= {self.name(b)}:", "else:"):
            self.say(word)
            self.indent += "    "
            inside = Block()
            inner = list(numbers)
            self.fill(inside, inner, places, depth + 1)
            yielded = [self.pick(inner) for _ in range(count)]
            inside.add_op(scf.YieldOp(*yielded))
            for result, value in zip(results, yielded, strict=True):
                self.say(f"{result} = {self.name(value)}")
            self.say("pass")
            self.indent = self.indent[:-4]
            regions.append(Region(inside))
        op = scf.IfOp(test, [i32] * count, *regions)
        block.add_ops([test, op])
        for result, text in zip(op.results, results, strict=True):
            self.names[result] = text
            numbers.append(result)

    def run(self, m0: list[int], m1: list[int]) -> None:
        """Run the Python form, on the two buffers in place."""
        scope: dict[str, Any] = {"wrap": wrap}
        exec("def run(m0, m1):\n" + "\n".join(self.lines or ["    pass"]), scope)
        scope["run"](m0, m1)


def wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_random_programs(build: Any, compiler: str) -> None:
    start = 0 if compiler == "gcc" else 1000
    programs = [Program(seed) for seed in range(start, start + 120)]
    module = ModuleOp([p.function for p in programs])
    module.verify()
    made = emit_c(module)
    flags = ["-O1"] if compiler == "gcc" else ["-O0"]
    library = build(made.text, compiler, *flags)
    for number, program in enumerate(programs):
        m0 = np.arange(SIZE, dtype=np.int32) * 1_000_003
        m1 = -np.arange(SIZE, dtype=np.int32)
        want0, want1 = m0.tolist(), m1.tolist()
        program.run(want0, want1)
        library(program.function.sym_name.data, m0, m1)
        assert (m0.tolist(), m1.tolist()) == (want0, want1), (number, "\n".join(program.lines))
