"""Inputs to check a program's values on: from a file, or made from a seed.

A seed gives two cases. In the first all numbers are ordinary, in the second every fourth is one
where arithmetic goes wrong first: NaN, the infinities, the zeros, a denormal, the limits of an
integer type. Sizes that are symbols are small and odd, and their lower bounds in the second case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from uopc.dialects.element_types import ElementType
from uopc.dialects.errors import UopcError
from uopc.dialects.rounding import Array
from uopc.interpreters.programs import Input, Program
from uopc.interpreters.symbols import bind_symbols, concrete

USUAL_SIZE = 7
ELEMENT_LIMIT = 1 << 24
"""How many elements an input may have that is made here."""


@dataclass(frozen=True)
class Case:
    """One set of inputs for a program."""

    name: str
    inputs: tuple[Array, ...]
    symbols: Mapping[str, int]


@dataclass(frozen=True)
class Source:
    """Where inputs come from: a seed, or a file of arrays."""

    seed: int = 0
    file: str | None = None

    @property
    def text(self) -> str:
        """As the argument of --check-values."""
        return str(self.seed) if self.file is None else self.file

    def cases(self, program: Program) -> list[Case]:
        """The cases of a program. Raises UopcError for a file or sizes that do not fit."""
        if self.file is not None:
            return [_from_arrays(program, read_arrays(self.file), Path(self.file).name)]
        return [_made(program, self.seed, edges=False), _made(program, self.seed, edges=True)]


def parse_source(text: str) -> Source:
    """The source that the argument of --check-values names.

    Raises UopcError [bad-argument] for what is neither a number nor a .npz file.
    """
    if text.endswith(".npz"):
        return Source(file=text)
    if text.isdecimal():
        return Source(seed=int(text))
    raise UopcError(
        "bad-argument",
        f"--check-values '{text}': expected a seed or a .npz file",
        hint="write --check-values=SEED, or put the option last; 0 is the default seed",
    )


def _made(program: Program, seed: int, *, edges: bool) -> Case:
    rng = np.random.default_rng([seed, int(edges)])
    symbols = {
        name: low if edges else min(max(low, USUAL_SIZE), high)
        for name, low, high in program.symbols
    }
    arrays = tuple(_array(program, i, symbols, rng, edges=edges) for i in program.inputs)
    words = "numbers and special values" if edges else "ordinary numbers"
    return Case(f"{words} of seed {seed}", arrays, symbols)


def _array(
    program: Program, wanted: Input, symbols: Mapping[str, int], rng: Any, *, edges: bool
) -> Array:
    sizes = [s for s in wanted.sizes if s is not None]
    if len(sizes) != len(wanted.sizes):
        raise UopcError(
            "cannot-make-inputs",
            f"nothing tells the sizes of '{wanted.name}' of @{program.name}",
            hint="give arrays: --check-values=inputs.npz",
        )
    shape = concrete(sizes, symbols)
    count = int(np.prod(shape, dtype=np.float64))
    if count > ELEMENT_LIMIT:
        raise UopcError(
            "cannot-make-inputs",
            f"'{wanted.name}' of @{program.name} has {count:,} elements, at most "
            f"{ELEMENT_LIMIT:,} are checked",
            hint="check a smaller program",
        )
    values = ordinary(wanted.row, shape, rng)
    if edges:
        chosen = rng.random(shape) < 0.25
        values = np.where(chosen, rng.choice(special(wanted.row), shape), values)
    return np.asarray(values).astype(wanted.row.numpy)


def ordinary(row: ElementType, shape: Sequence[int], rng: Any) -> Array:
    """Numbers that no op has trouble with."""
    if row.is_float:
        return rng.standard_normal(shape).astype(np.float32).astype(row.numpy)
    if row.is_bool:
        return rng.integers(0, 2, shape).astype(np.bool_)
    low, high = row.limits
    return rng.integers(max(low, -100), min(high, 100), shape, endpoint=True).astype(row.numpy)


def special(row: ElementType) -> Array:
    """The numbers of a type at which ops have their edges."""
    if row.is_float:
        import ml_dtypes

        finfo = cast("Callable[..., Any]", ml_dtypes.finfo)
        # In sums of products of bf16 denormals may count as zeros: docs/numerics.md.
        pairs = row.name == "bf16"
        smallest = finfo(row.numpy).tiny if pairs else finfo(row.numpy).smallest_subnormal
        values = [np.nan, np.inf, -np.inf, 0.0, -0.0, float(smallest), -1.0, 1.0]
        return np.array(values, np.float64).astype(row.numpy)
    if row.is_bool:
        return np.array([False, True])
    low, high = row.limits
    return np.array([low, low + 1, 0, 1, row.bits - 1, row.bits, high], row.numpy)


def read_arrays(file: str) -> dict[str, Array]:
    """The arrays of a .npz file. Raises UopcError [bad-input-file]."""
    try:
        with np.load(file, allow_pickle=False) as loaded:
            return {name: np.asarray(loaded[name]) for name in loaded.files}
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise UopcError("bad-input-file", f"'{file}' cannot be read: {error}") from error
    except Exception as error:  # zipfile's own errors have no common base
        raise UopcError("bad-input-file", f"'{file}' is damaged: {error}") from error


def _from_arrays(program: Program, arrays: Mapping[str, Array], source: str) -> Case:
    names = [i.name for i in program.inputs]
    numbered = [f"arr_{n}" for n in range(len(names))]
    chosen = names if set(names) <= set(arrays) else numbered
    missing = [n for n in chosen if n not in arrays]
    if missing:
        raise UopcError(
            "wrong-input-names",
            f"the file has arrays {', '.join(sorted(arrays)) or 'none'}",
            hint=f"@{program.name} takes {', '.join(names) or 'none'}",
        )
    inputs = tuple(
        _typed(program, i, arrays[n]) for i, n in zip(program.inputs, chosen, strict=True)
    )
    sizes = {name: int(arrays[name]) for name, _, _ in program.symbols if name in arrays}
    return case_of(program, inputs, f"the arrays of {source}", sizes)


def case_of(
    program: Program,
    inputs: Sequence[Array],
    name: str,
    sizes: Mapping[str, int] | None = None,
) -> Case:
    """A case of given arrays; sizes that neither these tell nor `sizes` are the usual ones."""
    known = [(i, a) for i, a in zip(program.inputs, inputs, strict=True) if None not in i.sizes]
    told = bind_symbols(
        program.name,
        [[s for s in i.sizes if s is not None] for i, _ in known],
        [a.shape for _, a in known],
        sizes or {},
    )
    usual = {name: min(max(low, USUAL_SIZE), high) for name, low, high in program.symbols}
    return Case(name, tuple(inputs), {**usual, **told})


def _typed(program: Program, wanted: Input, array: Array) -> Array:
    dtype = wanted.row.numpy
    if wanted.row.name == "bf16" and array.dtype in (np.dtype(np.uint16), np.dtype("V2")):
        return array.view(dtype)  # numpy's files have no bf16
    if array.dtype != dtype:
        raise UopcError(
            "bad-input",
            f"'{wanted.name}' of @{program.name} has dtype {array.dtype}, expected {dtype}",
            hint="convert it; nothing is converted silently",
        )
    return array
