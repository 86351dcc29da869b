"""The module's symbols: what each function and global is called in C, and how it is declared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from uopc.dialects.errors import UopcError
from uopc.dialects.locations import nearest_location, places_text
from uopc.dialects.op_text import op_text
from uopc.lowering.c_names import Names, is_plain_identifier, sanitize
from uopc.lowering.c_types import Scalar, is_memref, is_vector, scalar_type, types_hint


@dataclass(frozen=True)
class Parameter:
    """One parameter of a C function."""

    name: str
    ctype: str
    """Of a buffer, of its elements."""
    is_pointer: bool = False
    is_const: bool = False
    is_restrict: bool = False
    is_unsigned: bool = False

    def declaration(self, restrict: bool = True) -> str:
        """`const float *restrict x`; a prototype needs no restrict."""
        if not self.is_pointer:
            return f"{self.ctype} {self.name}"
        star = "*restrict " if restrict and self.is_restrict else "*"
        return f"{'const ' if self.is_const else ''}{self.ctype} {star}{self.name}"


@dataclass
class Signature:
    """A function as C declares it."""

    op: func.FuncOp
    name: str
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    result: str = "void"
    result_struct: str = ""
    """The definition of the struct that holds several results."""
    is_static: bool = False
    is_external: bool = False
    doc: str = ""

    def head(self, *, restrict: bool = True) -> str:
        """The declaration without its semicolon, broken to 100 columns."""
        start = f"{'static ' if self.is_static else ''}{self.result}"
        start += ("" if start[-1] == "*" else " ") + f"{self.name}("
        parts = [p.declaration(restrict) for p in self.parameters] or ["void"]
        line = start + ", ".join(parts) + ")"
        if len(line) <= 99:
            return line
        lines, current = list[str](), start
        for index, part in enumerate(parts):
            text = part + (")" if index == len(parts) - 1 else ",")
            if len(current) + len(text) > 98 and current.strip():
                lines.append(current.rstrip())
                current = "    "
            current += text + " "
        lines.append(current.rstrip())
        return "\n".join(lines)


class Symbols:
    """Names of the module's functions and globals: valid, unique, stable."""

    reserved: frozenset[str] = frozenset()
    """Names that nothing may have."""

    def __init__(self, module: ModuleOp, static_kernels: bool, target: str = "c") -> None:
        self.functions: dict[str, Signature] = {}
        self.globals: dict[str, tuple[str, bool]] = {}
        self.global_ops: dict[str, memref.GlobalOp] = {}
        self.target = target
        names = Names(self.reserved)
        self.ops = list(module.body.blocks[0].ops) if module.body.blocks else []
        self.calls: dict[Operation, set[str]] = {}
        """Which symbols each function calls."""
        self._name_all(names, static_kernels)
        self._names = names
        self.parts_setter: str | None = self._parts_setter() if target == "c" else None
        """The public function that plugs in a thread pool, if parallel parts are printed."""
        self.taken = frozenset(names.visible())

    def _name_all(self, names: Names, static_kernels: bool) -> None:
        # Public names are part of the interface: they get theirs before private ones do.
        for op in sorted(self.ops, key=_rank):
            if isinstance(op, func.FuncOp):
                symbol = op.sym_name.data
                self._check_new(op, symbol)
                name = self._external_name(op) if op.is_declaration else sanitize(symbol, "f")
                signature = Signature(op, names.take(name))
                if op.is_declaration and signature.name != name:
                    self._fail(op, f"two symbols become '{name}' in C", "rename one of them")
                signature.is_external = op.is_declaration
                signature.is_static = static_kernels and not op.is_declaration and not is_public(op)
                self.functions[symbol] = signature
                self.calls[op] = callees(op)
            elif isinstance(op, memref.GlobalOp):
                symbol = op.sym_name.data
                self._check_new(op, symbol)
                self.globals[symbol] = (names.take(sanitize(symbol, "g")), op.constant is not None)
                self.global_ops[symbol] = op
            else:
                self._unsupported(op)

    def fresh(self, name: str) -> str:
        """A file-level name like `name` that nothing else has."""
        return self._names.take(name)

    def _parts_setter(self) -> str | None:
        public = next((s for s in self.functions.values() if is_public(s.op)), None)
        return None if public is None else self._names.take(f"{public.name}_use_threads")

    def declare_all(self) -> None:
        """Work out all signatures; raises UopcError for a type that C does not have."""
        for signature in self.functions.values():
            self._declare(signature)

    def _check_new(self, op: Operation, symbol: str) -> None:
        if symbol in self.functions or symbol in self.globals:
            self._fail(op, f"symbol @{symbol} is defined twice", "give each its own name")

    def _external_name(self, op: func.FuncOp) -> str:
        name = op.sym_name.data
        if not is_plain_identifier(name):
            self._fail(
                op,
                f"the external function @{name} has no name that C code may declare",
                "an external function keeps its name: use a C identifier that is no keyword and "
                "no function of the C library",
            )
        return name

    def _declare(self, signature: Signature) -> None:
        op = signature.op
        attributes: list[Any] = list(op.arg_attrs.data) if op.arg_attrs is not None else []
        names = Names(self.taken)
        inputs = op.function_type.inputs.data
        arguments = () if op.is_declaration else op.args
        for index, t in enumerate(inputs):
            facts: dict[str, Attribute] = attributes[index].data if index < len(attributes) else {}
            hint = arguments[index].name_hint if arguments else None
            given = facts.get("uopc.name")
            if isinstance(given, StringAttr) and given.data:
                hint = given.data
            fallback = f"arg{index}"
            name = names.take(sanitize(hint, fallback) if hint else fallback)
            signature.parameters.append(self._parameter(op, t, name, facts))
        outputs = op.function_type.outputs.data
        types = [self.value_type(op, t) for t in outputs]
        if len(types) == 1:
            signature.result = types[0]
        elif types:
            fields = " ".join(f"{t}{'' if t[-1] == '*' else ' '}r{i};" for i, t in enumerate(types))
            signature.result = f"struct {signature.name}_results"
            signature.result_struct = f"{signature.result} {{ {fields} }};"
        doc = op.attributes.get("uopc.doc")
        parts = [doc.data if isinstance(doc, StringAttr) else "", places_text(op.location)]
        signature.doc = "; ".join(filter(None, parts))

    def _parameter(self, op: func.FuncOp, t: Attribute, name: str, facts: Any) -> Parameter:
        if not is_memref(t):
            return Parameter(name, self.value_type(op, t))
        element = self._scalar(op, t.element_type)
        unsigned = "uopc.unsigned" in facts and not element.is_float
        return Parameter(
            name,
            element.unsigned if unsigned else element.ctype,
            is_pointer=True,
            is_const="llvm.readonly" in facts,
            is_restrict="llvm.noalias" in facts,
            is_unsigned=unsigned,
        )

    def value_type(self, op: func.FuncOp, t: Attribute) -> str:
        """The C type of a parameter or result; vector types are the printer's own."""
        if is_memref(t):
            return f"{self._scalar(op, t.element_type).ctype} *"
        if is_vector(t):
            self._fail(
                op,
                f"a vector ({t}) crosses a function's border",
                "pass vectors through memory: compilers disagree on how vectors are passed",
            )
        return self._scalar(op, t).ctype

    def _scalar(self, op: func.FuncOp, t: Attribute) -> Scalar:
        found = scalar_type(t)
        if found is None:
            self._fail(
                op,
                f"type {t} has no form in C",
                types_hint(t),
            )
        return found

    def _unsupported(self, op: Operation) -> None:
        from uopc.lowering.c_style import nearest_hint

        self._fail(op, "is not part of a C program", nearest_hint(op.name, {}, self.target))

    def _fail(self, op: Operation, message: str, hint: str) -> NoReturn:
        raise UopcError(
            f"unsupported-in-{self.target}",
            f"'{op.name}': {message}",
            hint=hint,
            location=nearest_location(op),
            op_text=op_text(op),
        )

    def reachable(self) -> set[str]:
        """The functions that a function with external linkage calls, directly or not."""
        work = [s for s, f in self.functions.items() if not f.is_static]
        found = set(work)
        while work:
            for callee in self.calls[self.functions[work.pop()].op]:
                if callee in self.functions and callee not in found:
                    found.add(callee)
                    work.append(callee)
        return found


def callees(op: func.FuncOp) -> set[str]:
    """The symbols that a function's body calls."""
    found: set[str] = set()
    blocks = list(op.body.blocks)
    while blocks:
        for inner in blocks.pop().ops:
            if isinstance(inner, func.CallOp):
                found.add(inner.callee.string_value())
            for region in inner.regions:
                blocks.extend(region.blocks)
    return found


def is_public(op: func.FuncOp) -> bool:
    """Whether other files may call the function."""
    return op.sym_visibility is None or op.sym_visibility.data == "public"


def _rank(op: Operation) -> int:
    if not isinstance(op, func.FuncOp):
        return 2
    return 0 if op.is_declaration else 1 if is_public(op) else 2
