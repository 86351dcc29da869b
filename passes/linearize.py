"""linearize: a kernel over index ranges becomes a function of nested loops.

    ukernel.kernel @r_4 ins(%x : memref<4x8xf32>) outs(%o : memref<4xf32>) {
      %i = uloop.range 4
      %j = uloop.range 8 reduce
      %0 = uloop.load %x[%i, %j] : memref<4x8xf32>
      %1 = uloop.reduce max %0 over (%j) : f32
      uloop.store %1, %o[%i] : memref<4xf32>
    }

becomes

    func.func private @r_4(%x : memref<4x8xf32> {…}, %o : memref<4xf32> {…}) {
      %zero = arith.constant 0 : index
      …
      scf.for %i = %zero to %four step %one {
        %max = scf.for %j = %zero to %eight step %one iter_args(%acc = %minus_infinity) -> (f32) {
          %0 = memref.load %x[%i, %j] : memref<4x8xf32>
          %1 = arith.maximumf %acc, %0 : f32
          scf.yield %1 : f32
        }
        memref.store %max, %o[%i] : memref<4xf32>
      }
      func.return
    }

loop_placement.py says which loops a statement runs in; here statements that share their next
range share its loop, as far as they do not wait for what that loop computes as a whole. From here
on the order of every floating operation is fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ModuleOp,
    SymbolRefAttr,
)
from xdsl.passes import ModulePass

from uopc.dialects import kernel, loop
from uopc.dialects.errors import UopcError
from uopc.dialects.locations import location_of
from uopc.dialects.upstream_fixes import install
from uopc.passes.linearizer import Linearizer
from uopc.passes.loop_checks import problem_of
from uopc.passes.loop_dag import LoopDag
from uopc.passes.range_input import check_kernel_over_ranges, check_no_tensor_function


@dataclass(frozen=True)
class LinearizePass(ModulePass):
    """Turn kernels over index ranges into functions of loops.

    Raises UopcError [not-over-ranges] for kernels and functions that are still on tensors.
    """

    name = "linearize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_no_tensor_function(op, "kernelize and rangeify", self.name)
        install()  # vectors are compared and selected
        on_gpu: dict[str, SymbolRefAttr] = {}
        for kernel_op in list(op.body.block.ops):
            if isinstance(kernel_op, kernel.KernelOp):
                if kernel_op.target is not None and kernel_op.target.data == "cuda":
                    from uopc.passes.linearize_gpu import linearize_for_gpu

                    on_gpu[kernel_op.sym_name.data] = linearize_for_gpu(op, kernel_op)
                else:
                    for function in linearize_kernel(kernel_op):
                        op.body.block.insert_op_before(function, kernel_op)
                kernel_op.detach()
                kernel_op.erase(safe_erase=False)
        if on_gpu:
            for launch in op.walk():
                if isinstance(launch, kernel.LaunchOp):
                    symbol = launch.kernel
                    launch.properties["kernel"] = on_gpu.get(symbol.string_value(), symbol)


def linearize_kernel(op: kernel.KernelOp) -> list[func.FuncOp]:
    """The function that does what a kernel over ranges does, after what it calls."""
    dag = check_over_ranges(op)
    if any(isinstance(o, loop.RangeOp) and o.kind.data == "thread" for o in op.block.ops):
        from uopc.passes.linearize_threads import linearize_parts

        parts = linearize_parts(dag)
        if parts is not None:
            return parts
    return [Linearizer(dag).function()]


def _check_machine(op: kernel.KernelOp) -> None:
    """Raise UopcError [bad-schedule] for ranges of a GPU in a kernel that is for a CPU."""
    if op.target is not None and op.target.data == "cuda":
        return
    for inner in op.block.ops:
        if isinstance(inner, loop.RangeOp) and (kind := inner.kind.data) in ("block", "lane"):
            raise UopcError(
                "bad-schedule",
                f"kernel @{op.sym_name.data}: '{inner.result.name_hint or 'a range'}' is of kind "
                f"{kind}, which a GPU has, and the kernel is for a CPU",
                hint="expected loop, unroll, vector or thread; for a GPU run gpu-map before "
                "apply-schedule",
                location=location_of(op),
            )


def check_over_ranges(op: kernel.KernelOp) -> LoopDag:
    """The DAG of a kernel. Raises UopcError [not-over-ranges] for one that is still on tensors, and
    [no-linear-form] for one that asks for what cannot be."""
    check_kernel_over_ranges(op, "linearize")
    _check_machine(op)
    dag = LoopDag(op)
    problem = problem_of(dag)
    if problem is not None:
        message, hint = problem
        raise UopcError(
            "no-linear-form",
            f"kernel @{op.sym_name.data}: {message}",
            hint=hint,
            location=location_of(op),
        )
    return dag
