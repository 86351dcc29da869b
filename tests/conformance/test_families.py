"""Small StableHLO programs of every family against numpy, in the interpreter and in C.

In C the cases of a family are one program, so that they cost one compilation.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from family_cases import Case, run, together
from family_structures import (
    control,
    convolutions,
    indexing,
    movement,
    products,
    random_bits,
    solvers,
    sorts,
    windows,
)
from family_values import chlo, comparisons, conversions, elementwise, reductions

FAMILIES: dict[str, list[Case]] = {
    "elementwise": elementwise(), "comparisons": comparisons(), "conversions": conversions(),
    "reductions": reductions(), "windows": windows(), "indexing": indexing(),
    "products": products(), "convolutions": convolutions(), "movement": movement(),
    "sorts": sorts(), "solvers": solvers(), "random bits": random_bits(), "control": control(),
    "chlo": chlo(),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target", ["interpreter", "c"])
def test_family(family: str, target: str):
    cases = FAMILIES[family]
    inputs = [v for case in cases for v in case.inputs]
    results = run(together(cases), target, inputs)
    for case in cases:
        count = len(case.results)
        case.check(results[:count])
        results = results[count:]
    assert not results
