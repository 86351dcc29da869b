"""StableHLO in: what JAX lowers to, and torch-mlir exports, as something that runs.

exe = uopc.from_stablehlo(text)                    # C
y = exe(x)                                         # numpy arrays in and out
exe = uopc.from_stablehlo(text, "interpreter")     # the reference semantics
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uopc.dialects.errors import UopcError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from uopc.runtime.executable import Executable


def from_stablehlo(
    program: str | Path | ModuleOp,
    target: str = "c",
    *,
    function: str | None = None,
    **options: Any,
) -> Executable | Any:
    """Compile a StableHLO program, CHLO included; the result is called on numpy arrays.

    `program` is text in the form that JAX prints or in generic form, the path of a file of it, or
    a module, which is not changed. `function` is the one to run: @main, or the only public one,
    where none is named. `options` are those of `uopc.compile`.

    Raises UnsupportedError, which is a UopcError and a NotImplementedError, for what has no
    conversion, with the op and the reason; UopcError for a program or an option that is wrong.
    """
    from uopc.frontend.compile import CompileRequest, compile_made
    from uopc.passes.manager import garbage_collector_off

    with garbage_collector_off():
        module, name = read_stablehlo(program, function)
        request = CompileRequest(target, name, **options)
        return compile_made(module.clone, request)


def read_stablehlo(
    program: str | Path | ModuleOp, function: str | None = None
) -> tuple[ModuleOp, str]:
    """A StableHLO program as a module of utensor ops, and the name of the function that is meant.

    Raises what from_stablehlo raises.
    """
    from xdsl.dialects.func import FuncOp

    from uopc.dialects.registry import make_context
    from uopc.frontend.compile import read_program
    from uopc.passes.convert_stablehlo_to_utensor import ConvertStablehloToUtensorPass

    module = read_program(program)
    public = [
        op
        for op in module.body.block.ops
        if isinstance(op, FuncOp)
        and op.body.blocks
        and (op.sym_visibility is None or op.sym_visibility.data != "private")
    ]
    names = [op.sym_name.data for op in public]
    if function is None:
        function = "main" if "main" in names else names[0] if len(names) == 1 else None
    if function not in names:
        raise UopcError(
            "no-such-function",
            f"there is no public function @{function}"
            if function is not None
            else f"the module has {len(names)} public functions, none of them @main",
            hint=f"choose one with function=…: {', '.join(names)}"
            if names
            else "expected a func.func on tensors",
        )
    ConvertStablehloToUtensorPass().apply(make_context(), module)
    for op in public:  # others were converted as well, and need not fit one plan
        if op.sym_name.data != function:
            op.detach()
    return module, function


def speaks_stablehlo(module: ModuleOp) -> bool:
    """Whether a module has ops of StableHLO or CHLO, to be converted before it is compiled."""
    return any(op.name.startswith(("stablehlo.", "chlo.")) for op in module.walk())


def run_interpreted(text: str, inputs: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """Run a StableHLO program by the reference semantics; see `run_once` for bf16."""
    return run_once(text, inputs, "interpreter")


def run_compiled(text: str, inputs: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """Run a StableHLO program as C; see `run_once` for bf16."""
    return run_once(text, inputs, "c")


def run_once(
    text: str, inputs: Sequence[np.ndarray[Any, Any]], target: str, **options: Any
) -> list[Any]:
    """Compile for a target and run once; `options` are those of `uopc.compile`.

    A bf16 input may be given as its bits, in uint16.
    """
    from uopc.dialects.element_types import element_type_named

    executable: Any = from_stablehlo(text, target, **options)
    arrays: list[Any] = []
    for buffer, array in zip(executable.plan.inputs, inputs, strict=True):
        dtype = element_type_named(buffer.dtype).numpy
        as_bits = buffer.dtype == "bf16" and array.dtype == np.uint16
        arrays.append(array.view(dtype) if as_bits else array)
    results: Any = executable(*arrays)
    return [*results] if isinstance(results, tuple) else [results]
