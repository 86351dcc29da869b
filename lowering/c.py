"""The C emitter: a module of func, scf, memref, arith, math and vector as one C11 file.

    module {                                      static void e_4(const float *restrict x,
      func.func private @e_4(                                     float *restrict out)
          %x: memref<4xf32> {llvm.noalias,        {
                             llvm.readonly},          for (int64_t i = 0; i < 4; i++) {
          %out: memref<4xf32> {llvm.noalias}) {           out[i] = x[i] * 2.0f;
        …                                             }
      }                                           }
    }

The file needs no runtime; it includes <stdint.h>, and others only if they are used. It is also
valid C++17. Private functions become static, public ones get a prototype. What each op means
where C leaves it open is told in c_integer.py, c_float.py and c_helpers.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from uopc.dialects.errors import UopcError
from uopc.dialects.locations import nearest_location
from uopc.lowering.c_access import ACCESS_HANDLERS
from uopc.lowering.c_arguments import bind_arguments
from uopc.lowering.c_buffers import BUFFER_HANDLERS
from uopc.lowering.c_calls import CALL_HANDLERS
from uopc.lowering.c_calls import select as select_buffer
from uopc.lowering.c_control import CONTROL_HANDLERS
from uopc.lowering.c_file import CPP_CLOSE, CPP_OPEN, CFile, CFunction
from uopc.lowering.c_float import ATOM_OPERANDS, SCALAR_RULES, is_number, needs_atoms
from uopc.lowering.c_globals import global_array
from uopc.lowering.c_integer import add_extended, multiply_extended
from uopc.lowering.c_module import Signature, Symbols
from uopc.lowering.c_names import comment
from uopc.lowering.c_prelude import Prelude
from uopc.lowering.c_style import FunctionPrinter, Handler
from uopc.lowering.c_threads import RUN_PARTS
from uopc.lowering.c_types import Expr, is_memref, is_vector
from uopc.lowering.c_vector import VECTOR_HANDLERS, elementwise


@dataclass(frozen=True)
class CSource:
    """A C file and what its functions and arrays are called."""

    text: str
    names: dict[str, str]
    """IR symbol to C identifier, of functions and globals."""
    use_threads: str
    """The function that plugs a thread pool in (c_threads.py); empty where nothing is parallel."""
    file: CFile
    """What the text consists of."""


def emit_c(module: ModuleOp, *, static_kernels: bool = True, cpp_guard: bool = True) -> CSource:
    """The module as one C file.

    With `static_kernels`, private functions have internal linkage; without, any file may call
    them. With `cpp_guard`, a C++ compiler gives the public functions C linkage.

    Raises UopcError [unsupported-in-c] for an op or type that has no form in C, naming it and
    the nearest supported form, and [nesting-too-deep].
    """
    symbols = Symbols(module, static_kernels)
    symbols.declare_all()
    prelude = Prelude()
    reachable = symbols.reachable()
    functions = [
        _function(signature, symbols, prelude, symbol not in reachable)
        for symbol, signature in _in_order(symbols)
        if not signature.is_external
    ]
    file = _file(symbols, prelude, functions, cpp_guard)
    names = {s: f.name for s, f in symbols.functions.items()}
    names.update((s, name) for s, (name, _) in symbols.globals.items())
    return CSource(file.text(), names, file.parts_setter, file)


def emit_header(module: ModuleOp) -> str:
    """A header that declares the module's public functions, for C and C++.

    Raises UopcError [unsupported-in-c] as `emit_c` does for types.
    """
    symbols = Symbols(module, True)
    symbols.declare_all()
    public = [s for _, s in _in_order(symbols) if not s.is_static and not s.is_external]
    guard = f"UOPC_{public[0].name.upper() if public else 'EMPTY'}_H"
    lines = [f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", "", *CPP_OPEN, ""]
    for signature in public:
        lines += [*_comment_of(signature)]
        lines += _struct_of(signature)
        lines += [f"{signature.head(restrict=False)};", ""]
    lines += [*CPP_CLOSE, "", f"#endif /* {guard} */", ""]
    return "\n".join(lines)


def _in_order(symbols: Symbols) -> list[tuple[str, Signature]]:
    """Functions in the order of the module."""
    place = {op: i for i, op in enumerate(symbols.ops)}
    return sorted(symbols.functions.items(), key=lambda item: place[item[1].op])


# ---- the file

_FLOATS = re.compile(r"\b(float|double)\b")

_CONTRACT = """\
/* Nothing may be fused behind the source's back: a * b + c rounds twice. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif"""

_VECTOR_PRAGMA = """\
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors cross no call: what takes them is inlined */"""

_ARRAY_PRAGMA = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* of arrays that loops fill */
#endif"""

_RESTRICT = """\
#ifdef __cplusplus
#define restrict __restrict__
#endif"""


def _file(symbols: Symbols, prelude: Prelude, functions: list[CFunction], cpp_guard: bool) -> CFile:
    signatures = [s for _, s in _in_order(symbols)]
    opening: list[str] = [_includes(prelude)]
    lines = (line for each in functions for text in (each.before, each.body) for line in text)
    heads = (head for s in signatures for head in (s.result, *(p.ctype for p in s.parameters)))
    if any(map(_FLOATS.search, (*lines, *heads, *prelude.helpers().values()))):
        opening.append(_CONTRACT)
    if prelude.type_lines():
        opening.append(_VECTOR_PRAGMA)
    if prelude.has_arrays:
        opening.append(_ARRAY_PRAGMA)
    if any(p.is_restrict for s in signatures for p in s.parameters):
        opening.append(_RESTRICT)
    if prelude.type_lines():
        opening.append("\n".join(prelude.type_lines()))
    if cpp_guard:
        opening.append("\n".join(CPP_OPEN))
    opening += ["\n".join(_struct_of(s)) for s in signatures if s.result_struct]
    return CFile(
        tuple(opening),
        tuple(_arrays(symbols, {name for each in functions for name in each.arrays})),
        prelude.helpers(),
        tuple(f"{s.head(restrict=False)};" for s in signatures if _is_declared(s, symbols)),
        tuple(functions),
        ("\n".join(CPP_CLOSE),) if cpp_guard else (),
        (symbols.parts_setter or "") if RUN_PARTS in prelude.names() else "",
    )


def _arrays(symbols: Symbols, named: set[str]) -> Iterator[str]:
    """The definitions of the arrays that are public or named by a function."""
    for op in symbols.global_ops.values():
        name = symbols.globals[op.sym_name.data][0]
        public = op.sym_visibility.data == "public"
        if public or name in named:
            yield "\n".join(global_array(op, name, public))


def _struct_of(signature: Signature) -> list[str]:
    """The struct of several results; the header and the source may both define it."""
    if not signature.result_struct:
        return []
    guard = f"UOPC_{signature.name}_RESULTS"
    return [f"#ifndef {guard}", f"#define {guard}", signature.result_struct, "#endif"]


def _includes(prelude: Prelude) -> str:
    return "\n".join(f"#include <{h}>" for h in sorted(prelude.headers | {"stdint.h"}))


def _is_declared(signature: Signature, symbols: Symbols) -> bool:
    """Whether a prototype has to stand before the definitions."""
    if not signature.is_static:
        return True
    symbol = signature.op.sym_name.data
    for op in symbols.ops:  # called before it is defined?
        if op is signature.op:
            return False
        if symbol in symbols.calls.get(op, ()):
            return True
    return False


def _comment_of(signature: Signature) -> list[str]:
    lines = comment(signature.doc) if signature.doc else []
    if signature.is_static:
        return lines
    shapes: list[str] = []
    types = signature.op.function_type.inputs.data
    for t, parameter in zip(types, signature.parameters, strict=True):
        if is_memref(t):
            sizes = "x".join("?" if n < 0 else str(n) for n in t.get_shape())
            what = f"{sizes + ' ' if sizes else ''}{t.element_type}"
            if parameter.name == "workspace":  # as lower-plan calls it
                what = f"{sizes} bytes, aligned to 64"
            shapes.append(f"{parameter.name}: {what}")
    return lines + (comment("; ".join(shapes)) if shapes else [])


# ---- one function


def _function(signature: Signature, symbols: Symbols, prelude: Prelude, unused: bool) -> CFunction:
    op = signature.op
    symbol = op.sym_name.data
    if len(op.body.blocks) != 1:
        raise UopcError(
            f"unsupported-in-{symbols.target}",
            f"function @{symbol} has branches between blocks",
            hint="keep structured control flow: scf.if, scf.for, scf.while",
            location=nearest_location(op),
        )
    block = op.body.block
    p = FunctionPrinter(HANDLERS, prelude, symbols, block)
    p.result_type = signature.result
    bind_arguments(p, signature)
    last = p.run_block(block)
    handler = HANDLERS.get(type(last))
    if handler is None:
        p.unsupported(last)
    handler(p, last)
    comments = _comment_of(signature)
    if unused:
        comments.append("__attribute__((unused))")
    body = p.finish([parameter.name for parameter in signature.parameters])
    return CFunction(
        symbol,
        signature,
        tuple(p.before),
        tuple(comments),
        tuple(body),
        frozenset(symbols.calls[op]),
        frozenset(p.used_arrays),
    )


# ---- the table


def _elementwise(rule: Any, duplicates: bool) -> Handler:
    """The handler of an op whose scalar form is `rule`."""

    def handle(p: FunctionPrinter, op: Any) -> None:
        operands = op.operands
        result = op.results[0]
        if is_vector(operands[-1].type):
            elementwise(p, op)
            return
        get = p.atom if duplicates else p.expr
        t = p.scalar(operands[0].type, op)
        p.define(result, rule(p, op, t, p.scalar(result.type, op), *[get(v) for v in operands]))

    return handle


def _compare_floats(p: FunctionPrinter, op: arith.CmpfOp) -> None:
    (_DUPLICATING if needs_atoms(op) else _PLAIN)[arith.CmpfOp](p, op)


def _extreme(p: FunctionPrinter, op: arith.MaximumfOp | arith.MinimumfOp) -> None:
    """Against a constant, a comparison does, which names its operand twice."""
    held = [p.values.get(v) for v in op.operands]
    by_constant = any(isinstance(e, Expr) and is_number(e) for e in held)
    (_DUPLICATING if by_constant else _PLAIN)[type(op)](p, op)


def _select(p: FunctionPrinter, op: arith.SelectOp) -> None:
    if is_memref(op.result.type):
        select_buffer(p, op)
        return
    # A load inside of `c ? a : b` happens under a condition, which vectorizers handle worse, and
    # GCC before 14 wrongly (c_guards.py): in a variable it happens always, as the op says. So does
    # arithmetic of floats, which without -fno-trapping-math would stay there.
    for value in (op.lhs, op.rhs):
        held = p.values.get(value)
        if isinstance(held, Expr) and (held.reads or (held.type.is_float and not held.is_atom)):
            p.atom(value)
    _PLAIN[arith.SelectOp](p, op)


_PLAIN: dict[type[Operation], Handler] = {
    cls: _elementwise(rule, cls in ATOM_OPERANDS) for cls, rule in SCALAR_RULES.items()
}
_DUPLICATING: dict[type[Operation], Handler] = {
    cls: _elementwise(SCALAR_RULES[cls], True)
    for cls in (arith.CmpfOp, arith.MaximumfOp, arith.MinimumfOp)
}

HANDLERS: Mapping[type[Operation], Handler] = {
    **_PLAIN,
    **ACCESS_HANDLERS,
    **BUFFER_HANDLERS,
    **VECTOR_HANDLERS,
    **CONTROL_HANDLERS,
    **CALL_HANDLERS,
    arith.CmpfOp: _compare_floats,
    arith.MaximumfOp: _extreme,
    arith.MinimumfOp: _extreme,
    arith.SelectOp: _select,
    arith.AddUIExtendedOp: add_extended,
    arith.MulUIExtendedOp: multiply_extended(False),
    arith.MulSIExtendedOp: multiply_extended(True),
}
"""How each op is printed, by its class."""
