"""A case of a StableHLO op: its text, its inputs, what is expected; many cases as one program."""
# ruff: noqa: E501 -- the text of an op stands on a line

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import uopc

sys.path.insert(0, str(Path(__file__).parent))

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(11)
ELEMENTS: dict[str, tuple[str, Any]] = {
    "f64": ("float64", np.float64), "f32": ("float32", np.float32), "f16": ("float16", np.float16),
    "bf16": ("bfloat16", ml_dtypes.bfloat16), "i1": ("bool", np.bool_), "i8": ("int8", np.int8),
    "i16": ("int16", np.int16), "i32": ("int32", np.int32), "i64": ("int64", np.int64),
    "ui8": ("uint8", np.uint8), "ui16": ("uint16", np.uint16), "ui32": ("uint32", np.uint32),
    "ui64": ("uint64", np.uint64),
}  # fmt: skip
TOLERANCE = {"f64": 1e-12, "f32": 2e-6, "f16": 2e-3, "bf16": 1.6e-2}
NAMES = {numpy: element for element, (numpy, _) in ELEMENTS.items()}


def t(x: Array) -> str:
    return f"tensor<{''.join(f'{n}x' for n in x.shape)}{NAMES[x.dtype.name]}>"


def draw(element: str, *shape: int) -> Array:
    dtype = ELEMENTS[element][1]
    if "f" in element:
        return np.asarray(RNG.uniform(-2, 2, shape), dtype)
    if element == "i1":
        return np.asarray(RNG.integers(0, 2, shape), dtype)
    low, high = (0, 100) if element.startswith("ui") else (-50, 50)
    return np.asarray(RNG.integers(low, high, shape), dtype)


def bound(element: str, value: float = 0) -> Array:
    return np.asarray(value, ELEMENTS[element][1])


@dataclass(frozen=True)
class Case:
    """Ops that compute %r from %a, %b, …; what numpy says; what may differ, relative to 1 or |x|."""

    name: str
    body: str
    inputs: tuple[Array, ...]
    results: tuple[Array, ...]
    close: float = 0

    def function(self, name: str) -> str:
        names = "abcdefgh"
        arguments = ", ".join(f"%{n}: {t(v)}" for n, v in zip(names, self.inputs, strict=False))
        types = ", ".join(map(t, self.results))
        count = len(self.results)
        returned = "%r" if count == 1 else ", ".join(f"%r#{k}" for k in range(count))
        return f"func.func {name}({arguments}) -> ({types}) {{\n{self.body}\nreturn {returned} : {types}\n}}\n"

    def check(self, got: Sequence[Any]) -> None:
        for mine, wanted in zip(got, self.results, strict=True):
            assert mine.dtype == wanted.dtype and mine.shape == wanted.shape, self.name
            if self.close and wanted.size:
                mine, wanted = mine.astype(np.float64), wanted.astype(np.float64)
                np.testing.assert_allclose(mine, wanted, self.close, self.close, err_msg=self.name)
            else:
                np.testing.assert_array_equal(mine, wanted, err_msg=self.name)


def together(cases: Sequence[Case]) -> str:
    """All cases as one program."""
    arguments: list[str] = []
    lines: list[str] = []
    returned: list[str] = []
    types: list[str] = []
    for k, case in enumerate(cases):
        names = [f"%a{k}_{i}" for i in range(len(case.inputs))]
        arguments += [f"{n}: {t(v)}" for n, v in zip(names, case.inputs, strict=True)]
        results, count = [t(v) for v in case.results], len(case.results)
        lines.append(
            f"%r{k}:{count} = func.call @case{k}({', '.join(names)}) : ({', '.join(map(t, case.inputs))}) -> ({', '.join(results)})"
        )
        returned += [f"%r{k}#{i}" for i in range(count)]
        types += results
    functions = "".join(case.function(f"private @case{k}") for k, case in enumerate(cases))
    body = "\n".join(lines)
    return f"func.func public @main({', '.join(arguments)}) -> ({', '.join(types)}) {{\n{body}\nreturn {', '.join(returned)} : {', '.join(types)}\n}}\n{functions}"


def run(text: str, target: str, inputs: Sequence[Array]) -> list[Any]:
    results: Any = uopc.from_stablehlo(text, target)(*inputs)
    return list(results) if isinstance(results, tuple) else [results]


def op(
    name: str,
    inputs: Sequence[Array],
    results: Sequence[Array],
    properties: str = "",
    regions: str = "",
    **more: Any,
) -> Case:
    """A case of one op, in generic form."""
    used = ", ".join(f"%{n}" for n, _ in zip("abcdefgh", inputs, strict=False))
    given = f" <{{{properties}}}>" if properties else ""
    inside = f" ({regions})" if regions else ""
    count = "" if len(results) == 1 else f":{len(results)}"
    text = f'%r{count} = "{name}"({used}){given}{inside} : ({", ".join(map(t, inputs))}) -> ({", ".join(map(t, results))})'
    return Case(
        f"{name} {properties[:60]} {' '.join(map(t, inputs))}",
        text,
        tuple(inputs),
        tuple(results),
        **more,
    )


def ints(values: Sequence[int]) -> str:
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def pairs(values: Sequence[tuple[int, int]]) -> str:
    return f"dense<{[list(v) for v in values]}> : tensor<{len(values)}x2xi64>"


def body_of(kind: str, element: str) -> str:
    """{ kind(x, y) }; `set` gives y."""
    line = (
        f"%z = stablehlo.{kind} %x, %y : tensor<{element}>\nstablehlo.return %z : tensor<{element}>"
    )
    if kind == "set":
        line = f"stablehlo.return %y : tensor<{element}>"
    return f"{{\n^bb0(%x: tensor<{element}>, %y: tensor<{element}>):\n{line}\n}}"
