"""If, Loop and Scan, where the condition and the number of steps are known: written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from uopc.frontend.core import one_axis
from uopc.frontend.movement import stack
from uopc.frontend.onnx_import.call import Call, Result, Rules

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor

MAX_STEPS = 10_000
"""Steps of one loop that are written out."""


def _if(c: Call) -> Result:
    taken = bool(c.known(0).reshape(-1)[0])
    return c.importer.nested(c.graph("then_branch" if taken else "else_branch"), [])


def _loop(c: Call) -> Result:
    """The condition is looked at before each step; what a step scans is stacked."""
    body = c.graph("body")
    count = None if c.get(0) is None else int(c.known(0).reshape(-1)[0])
    going = True if c.get(1) is None else bool(c.known(1).reshape(-1)[0])
    state = [c[k] for k in range(2, len(c.inputs))]
    scanned: list[list[Tensor]] = [[] for _ in range(len(body.output) - 1 - len(state))]
    step = 0
    while going and (count is None or step < count):
        if step >= MAX_STEPS:
            raise c.unsupported(f"of more than {MAX_STEPS} steps: loops are written out")
        number = c.importer.constant(np.array(step, np.int64))
        condition = c.importer.constant(np.array(True))
        going_on, *results = c.importer.nested(body, [number, condition, *state])
        going = bool(c.importer.known(going_on, c.words).reshape(-1)[0])
        state, rows = results[: len(state)], results[len(state) :]
        for each, row in zip(scanned, rows, strict=True):
            each.append(row)
        step += 1
    return [*state, *(_stacked(c, rows, k + 1 + len(state)) for k, rows in enumerate(scanned))]


def _stacked(c: Call, rows: Sequence[Tensor], position: int) -> Tensor:
    if not rows:
        raise c.unsupported(f"that scans no steps into output {position - 1}: its shape is unknown")
    return stack(rows, 0)


def _scan(c: Call) -> Result:
    body, inputs = c.graph("body"), c.integer("num_scan_inputs")
    count = len(c.inputs) - inputs
    if count < 0 or inputs < 1:
        raise c.invalid(f"has {len(c.inputs)} inputs, {inputs} of them scanned")
    state, scanned = [c[k] for k in range(count)], [c[count + k] for k in range(inputs)]
    axes = c.integers("scan_input_axes") or [0] * inputs
    backwards = c.integers("scan_input_directions") or [0] * inputs
    places = [one_axis(a, x.ndim) for a, x in zip(axes, scanned, strict=True)]
    steps = {x.shape[k] for x, k in zip(scanned, places, strict=True)}
    if len(steps) != 1:
        raise c.invalid(f"scans axes of sizes {sorted(steps)}")
    length = steps.pop()
    if not 0 < length <= MAX_STEPS:
        raise c.unsupported(f"over {length} steps: loops are written out, 1 to {MAX_STEPS} steps")
    outputs: list[list[Tensor]] = [[] for _ in range(len(body.output) - count)]
    for step in range(length):
        parts: list[Tensor] = []
        for x, axis, back in zip(scanned, places, backwards, strict=True):
            at = length - 1 - step if back else step
            part = x.shrink([(at, at + 1) if k == axis else None for k in range(x.ndim)])
            parts.append(part.squeeze(axis))
        results = c.importer.nested(body, [*state, *parts])
        state = results[:count]
        for each, row in zip(outputs, results[count:], strict=True):
            each.append(row)
    out_axes = c.integers("scan_output_axes") or [0] * len(outputs)
    out_back = c.integers("scan_output_directions") or [0] * len(outputs)
    return [
        *state,
        *(
            stack(rows[::-1] if back else rows, one_axis(axis, rows[0].ndim + 1))
            for rows, axis, back in zip(outputs, out_axes, out_back, strict=True)
        ),
    ]


CONTROL_RULES: Rules = {
    "If": {1: _if},
    "Loop": {1: _loop},
    "Scan": {9: _scan},
}
