"""Random programs with loops and branches, as text of utensor and scf, all on integers: exact.

Values are scalars, rows of 4 and matrices of 3 x 4. Loops carry several of them, some unchanged,
some in each other's places, some changed by a scatter; they nest, run no step at all, count to a
number or to one that is computed, and read what is outside.
"""

from __future__ import annotations

import random

SCALAR, ROW, MATRIX = "tensor<i32>", "tensor<4xi32>", "tensor<3x4xi32>"
SHAPES = (SCALAR, ROW, MATRIX)


class ControlProgram:
    """A function on a scalar, a row and a matrix; `text` is its MLIR."""

    def __init__(self, seed: int, name: str) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        values: dict[str, list[str]] = {SCALAR: ["%s"], ROW: ["%r"], MATRIX: ["%m"]}
        self.block(values, 6, 2)
        picked = [(self.pick(values, t), t) for t in (*SHAPES, self.random.choice(SHAPES))]
        names, types = ", ".join(v for v, _ in picked), ", ".join(t for _, t in picked)
        body = "\n".join(self.lines)
        self.text = (
            f"func.func @{name}(%s : {SCALAR}, %r : {ROW}, %m : {MATRIX}) -> ({types}) {{\n{body}\n"
            f"func.return {names} : {types}\n}}\n"
        )

    def pick(self, values: dict[str, list[str]], type_: str) -> str:
        return self.random.choice(values[type_][-6:])

    def new(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def add(self, values: dict[str, list[str]], type_: str, op: str) -> str:
        name = self.new()
        self.lines.append(f"{name} = {op}")
        values[type_].append(name)
        return name

    def block(self, values: dict[str, list[str]], ops: int, depth: int) -> None:
        for _ in range(ops):
            kind = self.random.random()
            if depth and kind < 0.25:
                self.loop(values, depth)
            elif depth and kind < 0.35:
                self.branch(values, depth)
            else:
                self.plain(values)

    def plain(self, values: dict[str, list[str]]) -> None:
        s, r, m = (self.pick(values, t) for t in SHAPES)
        type_ = self.random.choice(SHAPES)
        a, b = self.pick(values, type_), self.pick(values, type_)
        match self.random.randrange(12):
            case 0 | 1:
                word = self.random.choice(("add", "sub", "mul", "max", "xor"))
                self.add(values, type_, f"utensor.{word} {a}, {b} : {type_}")
            case 2:
                self.add(values, ROW, f"utensor.reduce add {m} axes [0] : {MATRIX} -> {ROW}")
            case 3:
                self.add(values, SCALAR, f"utensor.reduce max {r} axes [0] : {ROW} -> {SCALAR}")
            case 4:
                at = self.add({"": []}, "", f"utensor.reshape {s} : {SCALAR} -> tensor<1xi32>")
                got = self.add(
                    {"": []},
                    "",
                    f"utensor.gather {m}, {at} axis 0 : {MATRIX}, tensor<1xi32> -> tensor<1x4xi32>",
                )
                self.add(values, ROW, f"utensor.reshape {got} : tensor<1x4xi32> -> {ROW}")
            case 5 | 6 | 7:
                self.scatter(values, s, r, m)
            case 8:
                number = self.random.randrange(-3, 4)
                self.add(values, type_, f"utensor.constant {number} : {type_}")
            case 9:
                self.add(values, ROW, f"utensor.iota axis 0 : {ROW}")
            case 10:
                one = self.add({"": []}, "", f"utensor.reshape {r} : {ROW} -> tensor<1x4xi32>")
                self.add(values, MATRIX, f"utensor.expand {one} : tensor<1x4xi32> -> {MATRIX}")
            case _:
                flag = self.add({"": []}, "", f"utensor.cmplt {a}, {b} : {type_}")
                self.add(values, type_, f"utensor.where {flag}, {a}, {b} : {type_}")

    def scatter(self, values: dict[str, list[str]], s: str, r: str, m: str) -> None:
        at = self.add({"": []}, "", f"utensor.reshape {s} : {SCALAR} -> tensor<1xi32>")
        kind = self.random.choice(("set", "set", "add"))
        none: dict[str, list[str]] = {"": []}
        if self.random.random() < 0.3:
            flat = self.add(none, "", f"utensor.reshape {m} : {MATRIX} -> tensor<12xi32>")
            one = self.add(none, "", f"utensor.reshape {s} : {SCALAR} -> tensor<1xi32>")
            put = self.add(
                none,
                "",
                f"utensor.scatter {kind} {flat}, {at}, {one} axis 0 : tensor<12xi32>, "
                "tensor<1xi32>, tensor<1xi32>",
            )
            self.add(values, MATRIX, f"utensor.reshape {put} : tensor<12xi32> -> {MATRIX}")
            return
        row = self.add(none, "", f"utensor.reshape {r} : {ROW} -> tensor<1x4xi32>")
        self.add(
            values,
            MATRIX,
            f"utensor.scatter {kind} {m}, {at}, {row} axis 0 : {MATRIX}, tensor<1xi32>, "
            "tensor<1x4xi32>",
        )

    def loop(self, values: dict[str, list[str]], depth: int) -> None:
        types = [self.random.choice(SHAPES) for _ in range(self.random.randrange(1, 4))]
        inits = [self.pick(values, t) for t in types]
        zero, four = self.new(), self.new()
        self.lines.append(f"{zero} = utensor.constant 0 : {SCALAR}")
        self.lines.append(f"{four} = utensor.constant 4 : {SCALAR}")
        limit = self.new()
        if self.random.random() < 0.5:
            number = self.random.choice((0, 1, 2, 3, 5))
            self.lines.append(f"{limit} = utensor.constant {number} : {SCALAR}")
        else:
            some = self.pick(values, SCALAR)
            self.lines.append(f"{limit} = utensor.mod {some}, {four} : {SCALAR}")
        before = [self.new() for _ in range(len(types) + 1)]
        after = [self.new() for _ in range(len(types) + 1)]
        all_types = ", ".join((SCALAR, *types))
        result = self.new()
        pairs = ", ".join(f"{b} = {v}" for b, v in zip(before, (zero, *inits), strict=True))
        self.lines.append(
            f"{result}:{len(types) + 1} = scf.while ({pairs}) : ({all_types}) -> ({all_types}) {{"
        )
        more, flag = self.new(), self.new()
        self.lines.append(f"{more} = utensor.cmplt {before[0]}, {limit} : {SCALAR}")
        self.lines.append(f"{flag} = tensor.extract {more}[] : tensor<i1>")
        self.lines.append(f"scf.condition({flag}) {', '.join(before)} : {all_types}")
        arguments = ", ".join(f"{a} : {t}" for a, t in zip(after, (SCALAR, *types), strict=True))
        self.lines.append(f"}} do {{\n^bb0({arguments}):")
        inner = {t: list(values[t]) for t in SHAPES}
        for a, t in zip(after, (SCALAR, *types), strict=True):
            inner[t].append(a)
        self.block(inner, 4, depth - 1)
        one, following = self.new(), self.new()
        self.lines.append(f"{one} = utensor.constant 1 : {SCALAR}")
        self.lines.append(f"{following} = utensor.add {after[0]}, {one} : {SCALAR}")
        given = [self.pick(inner, t) for t in types]
        self.lines.append(f"scf.yield {', '.join((following, *given))} : {all_types}\n}}")
        for k, t in enumerate((SCALAR, *types)):
            values[t].append(f"{result}#{k}")

    def branch(self, values: dict[str, list[str]], depth: int) -> None:
        types = [self.random.choice(SHAPES) for _ in range(self.random.randrange(1, 3))]
        a, b = self.pick(values, SCALAR), self.pick(values, SCALAR)
        more, flag, result = self.new(), self.new(), self.new()
        self.lines.append(f"{more} = utensor.cmplt {a}, {b} : {SCALAR}")
        self.lines.append(f"{flag} = tensor.extract {more}[] : tensor<i1>")
        all_types = ", ".join(types)
        self.lines.append(f"{result}:{len(types)} = scf.if {flag} -> ({all_types}) {{")
        for k in range(2):
            inner = {t: list(values[t]) for t in SHAPES}
            self.block(inner, 3, depth - 1)
            given = ", ".join(self.pick(inner, t) for t in types)
            self.lines.append(f"scf.yield {given} : {all_types}")
            self.lines.append("}" if k else "} else {")
        for k, t in enumerate(types):
            values[t].append(f"{result}#{k}")
