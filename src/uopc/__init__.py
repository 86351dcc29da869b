"""uopc: a compiler for tensor programs on xDSL. Every stage is IR, and it ends in plain C.

    import uopc
    exe = uopc.compile(text)        # MLIR text of a function on tensors
    y = exe(x)                      # numpy arrays
    print(exe.source)               # the C

What stands here is imported when it is first used: `import uopc` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uopc import nn
    from uopc.dialects.errors import UopcError
    from uopc.frontend.compile import compile, run
    from uopc.frontend.debugging import debug
    from uopc.frontend.extents import size
    from uopc.frontend.jax import from_jax
    from uopc.frontend.jit import UopcWarning, jit
    from uopc.frontend.onnx import from_onnx
    from uopc.frontend.plan_cache import cache_info, clear_cache
    from uopc.frontend.stablehlo import from_stablehlo
    from uopc.frontend.tensor import Tensor
    from uopc.lowering.plan import Plan, Program
    from uopc.runtime.executable import Executable

__version__ = "0.1.0"

_WHERE = {
    "Executable": "uopc.runtime.executable",
    "Plan": "uopc.lowering.plan",
    "Program": "uopc.lowering.plan",
    "Tensor": "uopc.frontend.tensor",
    "UopcError": "uopc.dialects.errors",
    "UopcWarning": "uopc.frontend.jit",
    "cache_info": "uopc.frontend.plan_cache",
    "clear_cache": "uopc.frontend.plan_cache",
    "compile": "uopc.frontend.compile",
    "debug": "uopc.frontend.debugging",
    "from_jax": "uopc.frontend.jax",
    "from_onnx": "uopc.frontend.onnx",
    "from_stablehlo": "uopc.frontend.stablehlo",
    "jit": "uopc.frontend.jit",
    "run": "uopc.frontend.compile",
    "size": "uopc.frontend.extents",
}

__all__ = [
    "Executable", "Plan", "Program", "Tensor", "UopcError", "UopcWarning", "cache_info",
    "clear_cache", "compile", "debug", "from_jax", "from_onnx", "from_stablehlo", "jit", "nn",
    "run", "size",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "nn":
        return import_module("uopc.nn")
    if name not in _WHERE:
        raise AttributeError(f"module 'uopc' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_WHERE, "nn"])
