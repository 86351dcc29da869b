"""A linear module for a GPU as the Program that the CUDA runtime works from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import func, gpu, memref
from xdsl.dialects.builtin import ModuleOp

from uopc.dialects.errors import UopcError
from uopc.dialects.gpu_kernels import block_of, gpu_kernels, grid_of
from uopc.dialects.index_expr import symbol
from uopc.dialects.locations import location_of
from uopc.lowering.cuda import CudaSource, emit_cuda
from uopc.lowering.plan import KernelCall, LaunchConfig, Plan, Program, Size


def cuda_program(module: ModuleOp, plans: Sequence[Plan]) -> Program:
    """The CUDA source of a module's kernels, and how each plan launches them.

    `plans` were read off before linearize. Raises UopcError [unsupported-in-cuda], and
    [launches-differ] where two plans launch a kernel with sizes of different names.
    """
    kernels = {name: op for name, (_, op) in gpu_kernels(module).items()}
    source = emit_cuda(module) if kernels else CudaSource("")
    named = tuple(_with_global_names(module, plan) for plan in plans)
    launches: dict[str, LaunchConfig] = {}
    for plan in named:
        for call in plan.kernels:
            config = _config(plan, call, kernels[call.symbol], source)
            if launches.setdefault(call.symbol, config) != config:
                raise UopcError(
                    "launches-differ",
                    f"kernel @{call.symbol} is launched with sizes of different names",
                    hint="run dedupe-kernels, which keeps such kernels apart",
                    location=location_of(kernels[call.symbol]),
                )
    return Program(source.text, "cuda", named, names=source.names, launches=launches)


def _config(plan: Plan, call: KernelCall, kernel: gpu.FuncOp, source: CudaSource) -> LaunchConfig:
    known = {s.name: symbol(s.name, s.lower, s.upper) for s in plan.symbols}
    x, y, z = grid_of(kernel, [known[name] for name in call.symbols])
    facts = source.kernels[call.symbol]
    block: tuple[Size, Size, Size] = block_of(kernel)
    return LaunchConfig((x, y, z), block, facts.dynamic_shared_bytes, facts.static_shared_bytes)


def _with_global_names(module: ModuleOp, plan: Plan) -> Plan:
    """The plan with its constants called as the module's globals are: plans may share them."""
    function = next(
        (
            op
            for op in module.body.block.ops
            if isinstance(op, func.FuncOp) and op.sym_name.data == plan.name
        ),
        None,
    )
    if function is None or not plan.constants:
        return plan
    globals_ = [
        op.name_.string_value() for op in function.walk() if isinstance(op, memref.GetGlobalOp)
    ]
    names = {b.ref: name for b, name in zip(plan.constants, globals_, strict=True)}
    return replace(
        plan,
        constants=tuple(replace(b, ref=names[b.ref]) for b in plan.constants),
        outputs=tuple(replace(b, alias=names.get(b.alias, b.alias)) for b in plan.outputs),
        kernels=tuple(
            replace(c, refs=tuple(names.get(ref, ref) for ref in c.refs)) for c in plan.kernels
        ),
    )
