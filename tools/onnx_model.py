"""An ONNX model for uopc-run: the module for given or random inputs, and all of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uopc.dialects.errors import UopcError
from uopc.frontend.onnx import OnnxProgram, bound_sizes
from uopc.frontend.onnx_frontend import parse_sizes
from uopc.frontend.onnx_import.model import read_model
from uopc.lowering.plan import Buffer, Plan

if TYPE_CHECKING:
    from uopc.frontend.onnx import ImportedModel
    from uopc.frontend.onnx_import.arrays import Array


def load(
    file: str, sizes: Sequence[str], inputs: Callable[[Plan], Sequence[Array]], given: bool
) -> tuple[ImportedModel, list[Array]]:
    """A model for the inputs that `inputs` finds, `given` or random, and its arguments."""
    dims: Mapping[str, int] = parse_sizes(list(sizes))
    program = OnnxProgram(read_model(file), "interpreter", dict(dims), "sidecar", {}, early=False)
    shapes: list[tuple[Any, ...]] = []
    for each in program.inputs:
        bound = bound_sizes(each, dims)
        if bound is None and not given:
            missing = [s for s in each.sizes or () if isinstance(s, str) and s not in dims]
            raise UopcError(
                "missing-size",
                f"input '{each.name}' has sizes that the model leaves open"
                + (f": {', '.join(missing)}" if missing else ""),
                hint="give the inputs with --input"
                + (f", or sizes: --size {missing[0]}=8" if missing else ""),
            )
        shapes.append(bound or ())
    buffers = tuple(
        Buffer(f"in{k}", each.name, each.element, shape)
        for k, (each, shape) in enumerate(zip(program.inputs, shapes, strict=True))
    )
    arrays = inputs(Plan("model", inputs=buffers))
    return program.imported(*arrays)
