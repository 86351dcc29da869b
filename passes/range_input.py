"""What a pass that lowers kernels or plans says to a module that is still on tensors.

Else it would find nothing to do, and the text that came in would go out as if it had been lowered.
Passes that only tidy up (dedupe-kernels, prune-parameters) leave such a module as it is.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp, ReadOp, WriteOp
from uopc.dialects.legality import why_illegal
from uopc.dialects.locations import location_of, nearest_location
from uopc.dialects.source_text import printable


def check_module_over_ranges(module: ModuleOp, pass_name: str) -> None:
    """Raise UopcError [not-over-ranges] for a kernel or a function that is still on tensors."""
    check_no_tensor_function(module, "kernelize and rangeify", pass_name)
    for op in module.body.block.ops:
        if isinstance(op, KernelOp):
            check_kernel_over_ranges(op, pass_name)


def check_kernel_over_ranges(op: KernelOp, pass_name: str) -> None:
    """Raise UopcError [not-over-ranges] for a kernel that reads and writes tensors."""
    if any(isinstance(inner, ReadOp | WriteOp) for inner in op.block.ops):
        raise UopcError(
            "not-over-ranges",
            f"kernel @{printable(op.sym_name.data)} is still on tensors",
            hint=f"run rangeify before {pass_name}",
            location=location_of(op),
        )


def check_no_tensor_function(module: ModuleOp, before: str, pass_name: str) -> None:
    """Raise UopcError [not-over-ranges] for a function with ops on tensors; the hint names the
    passes to run `before`."""
    for op in module.body.block.ops:
        if not isinstance(op, FuncOp):
            continue
        types = (*op.function_type.inputs.data, *op.function_type.outputs.data)
        if any(isinstance(each, TensorType) for each in types) and any(
            why_illegal(inner, "uloop") for inner in op.walk()
        ):
            raise UopcError(
                "not-over-ranges",
                f"function @{printable(op.sym_name.data)} is still on tensors",
                hint=f"run {before} before {pass_name}",
                location=nearest_location(op),
            )
