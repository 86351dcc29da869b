"""The printer of one function body, shared by every C-like target.

It walks the ops in order. Each op's handler (a small function in a table by op class) turns
operands, which are C expressions, into a new expression or a statement. An expression that is
used once, in the same block, stays unprinted until its user takes it; anything else becomes a
variable. Two rules keep that exact:

* an expression that reads memory is put into a variable before the next statement that may
  write memory (`flush_reads`);
* an expression may mention loop-carried variables; they change only where a loop body ends, and
  there all of them change at once (`assign_all`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from uopc.dialects.errors import UopcError
from uopc.dialects.locations import nearest_location
from uopc.dialects.op_text import op_name, op_text, value_text
from uopc.lowering.c_analysis import Liveness
from uopc.lowering.c_names import Names, sanitize_local
from uopc.lowering.c_prelude import Prelude
from uopc.lowering.c_types import (
    PRIMARY,
    Buffer,
    Expr,
    Lanes,
    Scalar,
    is_memref,
    is_vector,
    lanes_type,
    scalar_type,
    types_hint,
)

if TYPE_CHECKING:
    from uopc.lowering.c_module import Symbols

Handler = Callable[["FunctionPrinter", Any], None]

MAX_DEPTH = 12
MAX_LENGTH = 64
"""Limits of one expression: beyond them a variable is made."""
MAX_NESTING = 120
"""How deep blocks may nest: clang takes 256 brackets, and C promises 127."""


class FunctionPrinter:
    """Prints one function: statements into `lines`, values into `values`."""

    def __init__(
        self,
        handlers: Mapping[type[Operation], Handler],
        prelude: Prelude,
        symbols: Symbols,
        body: Block,
        target: str = "c",
    ) -> None:
        self.handlers = handlers
        self.prelude = prelude
        self.symbols = symbols
        self.target = target
        self.lines: list[str] = []
        self.before: list[str] = []
        """Definitions that stand before the function."""
        self.indent = "    "
        self.names = Names(symbols.taken)
        self.live = Liveness(body)
        self.values: dict[SSAValue, Expr | Buffer] = {}
        self.block: Block | None = None
        self.loop_depth = 0
        self.result_type = ""
        """How the function's return type is called in C, for functions of several results."""
        self.used_arrays: set[str] = set()
        """C names of the globals that the body reads or writes."""
        self.streams = False
        """Whether it stores past the caches, which has to be over before it returns."""
        self.homes: dict[SSAValue, Expr] = {}
        """Values that are assigned to a variable as soon as they are computed."""
        self._pending: dict[SSAValue, Expr] = {}
        self._declared: dict[str, list[int]] = {}
        self._bases: dict[str, str] = {}
        self._scalars: dict[int, Scalar | None] = {}
        self._lanes: dict[int, Lanes | None] = {}
        self._kept: list[Attribute] = []

    # ---- types

    def scalar(self, attribute: Attribute, op: Operation) -> Scalar:
        """The number type of a type attribute; an error in words if C has none."""
        try:
            found = self._scalars[id(attribute)]
        except KeyError:
            found = self._scalars[id(attribute)] = scalar_type(attribute)
            self._kept.append(attribute)
        if found is None:
            self.fail(op, f"type {attribute} has no form in C", types_hint(attribute))
        return found

    def vector(self, attribute: Attribute, op: Operation) -> Lanes:
        """The lanes of a vector type, whose C type gets defined."""
        try:
            found = self._lanes[id(attribute)]
        except KeyError:
            found = lanes_type(attribute) if is_vector(attribute) else None
            self._lanes[id(attribute)] = found
            self._kept.append(attribute)
        if found is None:
            self.fail(
                op,
                f"type {attribute} has no form in C",
                "vectors may have 1 to 65536 lanes of f64 f32 f16 bf16 i1 i8..i64 or index",
            )
        self.lanes_name(found)
        return found

    def lanes_name(self, lanes: Lanes) -> str:
        """The C type of vectors like `lanes`, defined in the prelude."""
        name = lanes.name
        element = "uint16_t" if lanes.element.is_half else lanes.element.ctype
        return self.prelude.typedef(
            name,
            f"typedef {element} {name} __attribute__((vector_size({lanes.bytes}), "
            f"aligned({lanes.element.size}), may_alias));",
        )

    def ctype(self, attribute: Attribute, op: Operation) -> str:
        """The C type of a variable that holds a value of this type."""
        if is_vector(attribute):
            return self.vector(attribute, op).name
        if is_memref(attribute):
            return f"{self.scalar(attribute.element_type, op).ctype} *"
        return self.variable_type(self.scalar(attribute, op))

    def variable_type(self, t: Scalar) -> str:
        """The C type of a variable of numbers; where indices are known to be small, theirs is."""
        return t.ctype

    # ---- values

    def expr(self, value: SSAValue) -> Expr:
        """The expression of a value, for one place in the text."""
        self._pending.pop(value, None)
        found = self.values.get(value)
        if not isinstance(found, Expr):
            self._missing(value, "a number or a vector")
        return found

    def atom(self, value: SSAValue) -> Expr:
        """The value as a name or literal, for several places in the text."""
        found = self.expr(value)
        if found.is_atom:
            return found
        self._declare(value, found)
        return self.values[value]  # pyright: ignore[reportReturnType] -- _declare put an Expr there

    def buffer(self, value: SSAValue) -> Buffer:
        """The buffer that a memref value stands for."""
        found = self.values.get(value)
        if not isinstance(found, Buffer):
            self._missing(value, "a buffer")
        return found

    def _missing(self, value: SSAValue, wanted: str) -> NoReturn:
        owner = value.owner
        op = owner if isinstance(owner, Operation) else owner.parent_op()
        message = f"{value_text(value)} is used before it is defined, or is not {wanted}"
        raise UopcError(
            "unsupported-in-c",
            message,
            location=None if op is None else nearest_location(op),
            op_text="" if op is None else op_text(op),
            hint="verify the module first: each use needs a definition that comes before it",
        )

    def define(self, value: SSAValue, expr: Expr) -> None:
        """Give a value its expression: kept for its only user, or put into a variable."""
        uses = self.live.uses.get(value, 0)
        if not uses:
            return
        home = self.homes.get(value)
        if home is not None:
            self.statement(f"{home.text} = {expr.text};")
            self.values[value] = home
            return
        if expr.is_atom:
            self.values[value] = expr
        elif (
            uses == 1
            and expr.depth <= MAX_DEPTH
            and len(expr.text) <= MAX_LENGTH
            and self.live.where[value] is self.block
        ):
            self.values[value] = expr
            self._pending[value] = expr
        else:
            self._declare(value, expr)

    def _declare(self, value: SSAValue, expr: Expr) -> None:
        name = self.new_name(value, "v")
        self.declaration(name, f"{typed(self.declared_type(expr), name)} = {expr.text};")
        self.values[value] = variable(name, expr)

    def declared_type(self, expr: Expr) -> str:
        """The C type of a variable for `expr`."""
        return self.variable_type(expr.type) if expr.lanes is None else self.lanes_name(expr.lanes)

    def new_name(self, value: SSAValue, fallback: str) -> str:
        """A fresh variable name after the value's own."""
        return self.names.take(self.base_name(value.name_hint, fallback))

    def base_name(self, hint: str | None, fallback: str) -> str:
        """A C name like `hint`, perhaps taken already."""
        if not hint:
            return fallback
        base = self._bases.get(hint)
        if base is None:
            base = self._bases[hint] = sanitize_local(hint)
        return base

    def flush_reads(self) -> None:
        """Put what reads memory into variables: memory is about to change."""
        for value in [v for v, e in self._pending.items() if e.reads]:
            self._declare(value, self._pending.pop(value))

    def settle(self, expr: Expr, base: str = "v") -> Expr:
        """The expression as a name or literal, in a new variable if it is neither."""
        if expr.is_atom:
            return expr
        name = self.names.take(base)
        self.declaration(name, f"{typed(self.declared_type(expr), name)} = {expr.text};")
        return variable(name, expr)

    # ---- statements

    def statement(self, text: str) -> None:
        """One line at the current indentation."""
        self.lines.append(self.indent + text)

    def declaration(self, name: str, text: str) -> None:
        """A variable that has its value for good; it goes again if nothing mentions it."""
        self._declared.setdefault(name, []).append(len(self.lines))
        self.statement(text)

    def finish(self, parameters: Sequence[str]) -> list[str]:
        """The lines, without variables that folding left unread, which compilers warn about.

        A variable that is only assigned goes with its assignments, since no expression has an
        effect. Parameters that are never read are cast to void, for the same reason.
        """
        lines = self.lines
        while True:
            found: dict[str, list[int]] = {name: [] for name in (*self._declared, *parameters)}
            for number, line in enumerate(lines):
                for word in _WORD.findall(line):
                    if word in found:
                        found[word].append(number)
            dropped = [
                number
                for name, starts in self._declared.items()
                for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
                if lines[start]
                for number in _only_written(lines, name, start, end, found[name])
            ]
            if not dropped:
                break
            for number in dropped:
                lines[number] = ""
        unused = [f"    (void){name};" for name in parameters if not found[name]]
        return unused + [line for line in lines if line]

    def open(self, head: str) -> None:
        """Start a block: `head {`."""
        if len(self.indent) > 4 * MAX_NESTING:
            raise UopcError(
                "nesting-too-deep",
                f"blocks nest more than {MAX_NESTING} deep, which C compilers do not take",
                hint="split the function into several",
            )
        self.lines.append(f"{self.indent}{head} {{")
        self.indent += "    "
        self.names.open()

    def close(self, tail: str = "}") -> None:
        """End a block."""
        self.names.close()
        self.indent = self.indent[:-4]
        self.lines.append(self.indent + tail)

    def run_block(self, block: Block) -> Operation:
        """Print the ops of a block but for its terminator, which is returned."""
        outer, self.block = self.block, block
        live, handlers = self.live.live, self.handlers
        last = block.last_op
        if last is None:
            raise UopcError("unsupported-in-c", "a block is empty; it needs a terminator")
        for op in block.ops:
            if op is last:
                break
            if op in live:
                handler = handlers.get(type(op))
                if handler is None:
                    self.unsupported(op)
                handler(self, op)
        self.block = outer
        return last

    def assign_all(self, targets: Sequence[tuple[str, Expr]]) -> None:
        """Assign all expressions to their variables as if at once.

        Each assignment waits until no other needs the variable's old value; a cycle, as in a
        swap, is broken by saving one old value.
        """
        todo = {name: expr for name, expr in targets if expr.text != name}
        readers = dict.fromkeys(todo, 0)
        for name, expr in todo.items():
            for mentioned in expr.mutable:
                if mentioned in readers and mentioned != name:
                    readers[mentioned] += 1
        ready = [name for name in todo if not readers[name]]
        ready.reverse()
        while todo:
            if not ready:
                name = next(iter(todo))
                expr = todo.pop(name)  # and behind the others, so that each is saved once
                saved = self.names.take("next")
                self.statement(f"{typed(self.declared_type(expr), saved)} = {expr.text};")
                self._release(name, expr, readers, ready)
                todo[name] = Expr(saved, PRIMARY, expr.type, lanes=expr.lanes)
                continue
            name = ready.pop()
            expr = todo.pop(name)
            self.statement(_assignment(name, expr))
            self._release(name, expr, readers, ready)

    def _release(self, name: str, expr: Expr, readers: dict[str, int], ready: list[str]) -> None:
        for mentioned in expr.mutable:
            if mentioned in readers and mentioned != name:
                readers[mentioned] -= 1
                if not readers[mentioned]:
                    ready.append(mentioned)

    # ---- errors

    def fail(self, op: Operation, message: str, hint: str) -> NoReturn:
        """Raise the error of an op that has no form in C."""
        raise UopcError(
            f"unsupported-in-{self.target}",
            f"'{op_name(op)}': {message}",
            hint=hint,
            location=nearest_location(op),
            op_text=op_text(op),
        )

    def unsupported(self, op: Operation) -> NoReturn:
        """Raise the error of an op that the table does not have."""
        name = op_name(op)
        if isinstance(op, UnregisteredOp):
            self.fail(op, "is not a registered op", "register its dialect, and lower it first")
        hint = nearest_hint(name, self.handlers, self.target)
        self.fail(op, f"has no form in {self.target.upper()}", hint)


def _only_written(
    lines: Sequence[str], name: str, start: int, end: int, places: Sequence[int]
) -> list[int]:
    """The lines that declare and assign a variable which is never read; else none."""
    own = [n for n in places if start <= n < end]
    for n in own:
        if n != start:
            text = lines[n].lstrip()
            rest = text[len(name) :]
            if not text.startswith(name) or not _ASSIGNS.match(rest):
                return []
    return sorted(set(own))


_ASSIGNS = re.compile(r" [-+*/&|^]?= ")
_WORD = re.compile(r"[A-Za-z_]\w*")

_PREFIXES = {
    "utensor": "run kernelize, rangeify and linearize (the pipeline PIPELINE) before -t TARGET",
    "ukernel": "run linearize (the pipeline PIPELINE) before -t TARGET",
    "uloop": "run linearize before -t TARGET",
    "linalg": "lower linalg to scf loops first (convert-linalg-to-loops)",
    "affine": "lower affine to scf first (lower-affine)",
    "cf": "keep structured control flow (scf); branches between blocks have no form in C here",
    "tensor": "bufferize first: C has buffers (memref), no tensors",
}


_PIPELINES = {"c": "uopc-cpu", "cuda": "uopc-cuda"}
_LAST_DIALECTS = {"c": "vector", "cuda": "gpu"}


def nearest_hint(name: str, handlers: Mapping[type[Operation], Handler], target: str = "c") -> str:
    """What to do about an op that no handler takes."""
    import difflib

    dialect = name.split(".")[0]
    if dialect in _PREFIXES:
        hint = _PREFIXES[dialect]
        return hint.replace("PIPELINE", _PIPELINES[target]).replace("TARGET", target)
    known = [cls.name for cls in handlers]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"nearest supported: {', '.join(close)}"
    return f"supported are func, scf, memref, arith, math and {_LAST_DIALECTS[target]} ops"


def typed(ctype: str, name: str) -> str:
    """A type before a name: `int32_t x`, `int32_t *x`."""
    return f"{ctype}{name}" if ctype[-1] == "*" else f"{ctype} {name}"


def variable(name: str, expr: Expr) -> Expr:
    """The variable that holds what `expr` gave."""
    found = Expr(name, PRIMARY, expr.type, expr.low, expr.high, expr.lanes)
    found.sizelike = expr.sizelike
    return found


def _assignment(name: str, expr: Expr) -> str:
    compound = expr.compound
    if compound is not None and compound[0] == name:
        return f"{name} {compound[1]}= {compound[2]};"
    return f"{name} = {expr.text};"


def combine(
    text: str, level: int, type: Scalar, operands: Sequence[Expr], low: int = 0, high: int = 0
) -> Expr:
    """A new expression made of others: it reads and mentions what they do."""
    made = Expr(text, level, type, low, high)
    depth = 0
    for operand in operands:
        if operand.depth > depth:
            depth = operand.depth
        if operand.reads:
            made.reads = True
        if operand.mutable:
            made.mutable = made.mutable | operand.mutable if made.mutable else operand.mutable
    made.depth = depth + 1
    return made
