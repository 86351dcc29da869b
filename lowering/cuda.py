"""The CUDA emitter: the kernels of a module as one .cu file.

    gpu.module @kernels {                       extern "C" __global__ void __launch_bounds__(128)
      gpu.func @e_4(%x: memref<4xf32>,          e_4(const float *__restrict__ x,
                    %out: memref<4xf32>)            float *__restrict__ out)
          kernel {                              {
        %t = gpu.thread_id x                        int64_t thread = threadIdx.x;
        …                                           out[thread] = x[thread] * 2.0f;
      }                                         }
    }

The file is CUDA C++17 for nvcc, NVRTC and the emulator's shim. Functions that kernels call become
device functions, constants device variables. What the host does (func.func with launches) is not
printed: the runtime does it. Scalars mean what they mean in C (c_float.py, c_integer.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from uopc.dialects.errors import UopcError
from uopc.dialects.gpu_extensions import is_workgroup
from uopc.dialects.gpu_kernels import INDEX_BITS
from uopc.dialects.locations import nearest_location
from uopc.lowering.c import HANDLERS as C_HANDLERS
from uopc.lowering.c_arguments import bind_arguments
from uopc.lowering.c_globals import array_values
from uopc.lowering.c_module import Parameter, Signature, Symbols
from uopc.lowering.c_names import comment
from uopc.lowering.c_style import Handler
from uopc.lowering.c_types import scalar_type
from uopc.lowering.c_vector import VECTOR_HANDLERS
from uopc.lowering.cuda_ops import ALIGNMENT, GPU_HANDLERS, CudaPrinter
from uopc.lowering.cuda_outline import Kernel, Outlined, outline
from uopc.lowering.cuda_prelude import TYPES, CudaPrelude
from uopc.lowering.cuda_vector import VECTOR_HANDLERS as CUDA_VECTOR_HANDLERS

STATIC_SHARED_LIMIT = 48 << 10
"""Bytes of `__shared__` arrays in one kernel; more is taken as dynamic shared memory."""

RESERVED = frozenset(
    [
        "blockDim",
        "blockIdx",
        "gridDim",
        "threadIdx",
        "warpSize",
        "dim3",
        "half",
        "half2",
        "shared_memory",
    ]
    + [f"{t}{n}" for t in ("char", "uchar", "short", "ushort", "int", "uint") for n in "1234"]
    + [f"{t}{n}" for t in ("long", "ulong", "longlong", "float", "double") for n in "1234"]
    + ["ulonglong1", "ulonglong2", "ulonglong3", "ulonglong4"]
)
"""Names that mean something in CUDA and nothing in C."""


@dataclass(frozen=True)
class KernelFacts:
    """What a launch has to know of a kernel. Sizes in bytes."""

    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    source: Operation | None = None
    """The gpu.func it was printed from."""


@dataclass(frozen=True)
class CudaSource:
    """A CUDA file, what its kernels and arrays are called, and what launches need."""

    text: str
    names: dict[str, str] = field(default_factory=dict[str, str])
    """IR symbol to identifier."""
    kernels: dict[str, KernelFacts] = field(default_factory=dict[str, KernelFacts])


class CudaSymbols(Symbols):
    """Names that are free in CUDA too."""

    reserved = RESERVED


def emit_cuda(module: ModuleOp) -> CudaSource:
    """The kernels of a module as one CUDA file.

    Raises UopcError [unsupported-in-cuda] for an op or type that has no form in CUDA, naming it
    and the nearest supported form, and for a module without kernels.
    """
    return _Emitter(outline(module)).source()


class _Emitter:
    def __init__(self, outlined: Outlined) -> None:
        self.outlined = outlined
        self.symbols = CudaSymbols(outlined.module, False, "cuda")
        self.symbols.declare_all()
        self.prelude = CudaPrelude()
        self.facts: dict[str, KernelFacts] = {}

    def source(self) -> CudaSource:
        place = {op: i for i, op in enumerate(self.symbols.ops)}
        functions = sorted(self.symbols.functions.items(), key=lambda item: place[item[1].op])
        kernels = self.outlined.kernels
        for symbol, signature in functions:
            if signature.is_external:
                self.fail(signature.op, f"the function @{symbol} is only declared")
        devices = [self.device(s) for symbol, s in functions if symbol not in kernels]
        texts = [self.kernel(kernels[symbol], s) for symbol, s in functions if symbol in kernels]
        heads = [f"{_device_head(s)};" for symbol, s in functions if symbol not in kernels]
        structs = [s.result_struct for _, s in functions if s.result_struct]
        sections = [TYPES, *structs]
        constants = [self.array(op) for op in self.symbols.global_ops.values()]
        if constants:
            sections.append("\n".join(['extern "C" {', *constants, "}"]))
        sections += self.prelude.helpers().values()
        if heads:
            sections.append("\n".join(heads))
        names = {s: f.name for s, f in self.symbols.functions.items()}
        names.update((s, name) for s, (name, _) in self.symbols.globals.items())
        text = "\n\n".join([*sections, *devices, *texts]) + "\n"
        return CudaSource(text, names, self.facts)

    def fail(self, op: Operation, message: str) -> None:
        raise UopcError(
            "unsupported-in-cuda",
            message,
            hint="define it in the gpu.module",
            location=nearest_location(op),
        )

    def array(self, op: memref.GlobalOp) -> str:
        """A constant: not internal, so that the runtime finds it by name."""
        t = scalar_type(op.type.element_type)
        assert t is not None
        name = self.symbols.globals[op.sym_name.data][0]
        count = math.prod(op.type.get_shape())
        head = f"__device__ __align__({ALIGNMENT}) {t.ctype} {name}[{max(count, 1)}]"
        if not hasattr(op.initial_value, "data"):
            return f"{head};"
        values = array_values(op.initial_value, t, count)  # pyright: ignore[reportArgumentType] -- dense, by the check above
        rows = [", ".join(values[i : i + 12]) for i in range(0, len(values), 12)]
        return f"{head} = {{{_NEXT_ROW.join(rows)}}};"

    # Functions.

    def device(self, signature: Signature) -> str:
        body = self.body(signature, {})
        lines = comment(signature.doc) if signature.doc else []
        return "\n".join([*lines, _device_head(signature), "{", *body, "}"])

    def kernel(self, kernel: Kernel, signature: Signature) -> str:
        places, total = _shared_places(kernel.function)
        dynamic = total > STATIC_SHARED_LIMIT
        body = self.body(signature, places if dynamic else {})
        if dynamic:
            array = f"extern __shared__ __align__({ALIGNMENT}) unsigned char shared_memory[];"
            body = [f"    {array}", *body]
        self.facts[kernel.symbol] = KernelFacts(
            0 if dynamic else total, total if dynamic else 0, kernel.source
        )
        lines = comment(signature.doc) if signature.doc else []
        head = 'extern "C" __global__ void'
        if kernel.block_size is not None:
            head += f" __launch_bounds__({math.prod(kernel.block_size)})"
        return "\n".join([*lines, head, *_called(signature), "{", *body, "}"])

    def body(self, signature: Signature, places: dict[Operation, int]) -> list[str]:
        """The statements of a function; `places` of its arrays in dynamic shared memory."""
        op = signature.op
        if len(op.body.blocks) != 1:
            self.fail(op, f"function @{op.sym_name.data} has branches between blocks")
        block = op.body.block
        p = CudaPrinter(HANDLERS, self.prelude, self.symbols, block, "cuda")
        p.shared_places = places
        p.narrow = INDEX_BITS in op.attributes
        p.result_type = signature.result
        bind_arguments(p, signature)
        last = p.run_block(block)
        handler = HANDLERS.get(type(last))
        if handler is None:
            p.unsupported(last)
        handler(p, last)
        return p.finish([parameter.name for parameter in signature.parameters])


_NEXT_ROW = ",\n    "


def _parameter(parameter: Parameter) -> str:
    if not parameter.is_pointer:
        ctype = "long long" if parameter.ctype == "int64_t" else parameter.ctype
        return f"{ctype} {parameter.name}"
    const = "const " if parameter.is_const else ""
    restrict = "__restrict__ " if parameter.is_restrict else ""
    return f"{const}{parameter.ctype} *{restrict}{parameter.name}"


def _called(signature: Signature) -> list[str]:
    """The name with its parameters, in lines of up to 100 columns if that is possible."""
    parts = [_parameter(p) for p in signature.parameters]
    line = f"{signature.name}({', '.join(parts)})"
    if len(line) <= 99:
        return [line]
    return [f"{signature.name}(", *(f"    {part}," for part in parts[:-1]), f"    {parts[-1]})"]


def _device_head(signature: Signature) -> str:
    parameters = ", ".join(map(_parameter, signature.parameters))
    return f"static __device__ {signature.result} {signature.name}({parameters})"


def _shared_places(function: Operation) -> tuple[dict[Operation, int], int]:
    """Where each shared array of a kernel begins, and how many bytes they take."""
    places: dict[Operation, int] = {}
    end = 0
    for op in function.walk():
        if isinstance(op, memref.AllocaOp) and is_workgroup(op.memref.type):
            t = scalar_type(op.memref.type.element_type)
            shape = op.memref.type.get_shape()
            if t is not None and min(shape, default=1) >= 0:
                places[op] = end
                size = max(math.prod(shape), 1) * t.size
                end += -(-size // ALIGNMENT) * ALIGNMENT
    return places, end


HANDLERS: Mapping[type[Operation], Handler] = {
    **{
        cls: handler
        for cls, handler in C_HANDLERS.items()
        if cls not in VECTOR_HANDLERS
        and not cls.name.startswith("vector.")
        and cls not in (memref.AllocOp, memref.DeallocOp)
    },
    **GPU_HANDLERS,
    **CUDA_VECTOR_HANDLERS,
}
"""How each op is printed, by its class."""
