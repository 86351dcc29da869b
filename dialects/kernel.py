"""ukernel: a plan of kernel launches over buffers, and the kernels.

    plan    ::= plan @name SIZES? ins(%x : memref<4x8xf32>, …) { step* return }
    step    ::= %t = temp : M (at OFFSET)?          storage of the plan, contents undefined
              | %o = output : M                     storage of the caller
              | %c = constant dense<…> : M
              | %v = view %b : M -> M               the same elements in another shape
              | launch @kernel (sizes(%n, …))? ins(%a, %b : M, M) outs(%o : M)
              | while … | if …                      kernel_control.py
    return  ::= return %o, … : M, …                 one a result; an input or a view is an alias
    kernel  ::= kernel @name SIZES? ins(%a : M, …) outs(%o : M, …) (attributes {…})? { body }
    SIZES   ::= sizes(%n = n = 1 to 64, …)          sizes known at the call
    M       ::= memref<?x8xf32> (of [n + 1, 8])?    a `?` is followed by its expression

The plan is the only place that says who reads and writes what. A kernel's body is at the level
of utensor (then `read` and `write` connect it to its buffers), uloop, or upstream loops.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.element_types import element_type, signless
from uopc.dialects.index_expr import Expr
from uopc.dialects.kernel_control import CONTROL_OPS
from uopc.dialects.kernel_signature import (
    BufferedOp,
    Signature,
    buffer_of,
    buffer_type,
    check_sizes,
    parse_buffer,
    print_buffer,
)
from uopc.dialects.numbers import print_dense
from uopc.dialects.sizes import Size, SizesAttr, element_count, sizes_of, tensor_type


@irdl_op_definition
class KernelOp(BufferedOp):
    """One loop nest over buffers: inputs first, then `outputs` buffers that it writes."""

    name = "ukernel.kernel"
    outputs = prop_def(IntegerAttr)
    flops = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))
    """Operations a launch performs, at the sizes' upper bounds."""
    bytes = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))
    """Bytes a launch must read and write, at the sizes' upper bounds."""
    target = opt_prop_def(StringAttr)
    schedule = opt_prop_def(StringAttr)
    doc = opt_prop_def(StringAttr)
    """Which tensor ops it computes."""
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        symbols: Sequence[Expr],
        buffer_sizes: Sequence[Sequence[Size]],
        outputs: int,
        body: Block,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "symbols": SizesAttr(tuple(symbols)),
                "buffer_sizes": ArrayAttr([SizesAttr(tuple(s)) for s in buffer_sizes]),
                "outputs": IntegerAttr(outputs, i64),
                "flops": IntegerAttr(0, i64),
                "bytes": IntegerAttr(0, i64),
            },
            regions=[Region(body)],
        )

    @property
    def inputs_count(self) -> int:
        return len(self.buffers) - self.outputs.value.data

    @property
    def display_name(self) -> str:
        """The name without what makes the symbol unique: `r_4` of `@r_4$1`."""
        return self.sym_name.data.partition("$")[0]

    def verify_(self) -> None:
        super().verify_()
        if not 0 <= self.outputs.value.data <= len(self.buffers):
            raise VerifyException(
                f"a kernel with {len(self.buffers)} buffers cannot write "
                f"{self.outputs.value.data} of them"
            )

    def print(self, printer: Printer) -> None:
        self.print_sizes_clause(printer)
        self.print_arguments(printer, "ins", 0, self.inputs_count)
        self.print_arguments(printer, "outs", self.inputs_count, len(self.buffers))
        names = ("flops", "bytes", "target", "schedule", "doc")
        given = {name: self.properties[name] for name in names if name in self.properties}
        extra = {n: a for n, a in given.items() if a != _ZERO} | self.attributes
        if extra:
            printer.print_string(" attributes ")
            printer.print_attr_dict(extra)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name()
        signature = Signature(parser)
        signature.parse_buffers("ins")
        outputs = signature.parse_buffers("outs")
        properties = signature.properties(name)
        attributes = _parse_attributes(
            parser, properties, ("flops", "bytes", "target", "schedule", "doc")
        )
        properties["outputs"] = IntegerAttr(outputs, i64)
        properties.setdefault("flops", _ZERO)
        properties.setdefault("bytes", _ZERO)
        body = parser.parse_region(signature.arguments)
        return cls.create(properties=properties, attributes=attributes, regions=[body])


@irdl_op_definition
class ReadOp(IRDLOperation):
    """`ukernel.read %b : memref<4x8xf32> -> tensor<4x8xf32>`: a buffer's contents as a value."""

    name = "ukernel.read"
    buffer = operand_def(MemRefType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$buffer attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, sizes: Sequence[Size]):
        result = tensor_type(buffer_of(buffer).element_type, tuple(sizes))
        super().__init__(operands=[buffer], result_types=[result])

    def verify_(self) -> None:
        _check_same_shape(self.buffer, self.result, self.name)


@irdl_op_definition
class WriteOp(IRDLOperation):
    """`ukernel.write %t, %b : tensor<4xf32>, memref<4xf32>`: a value fills a buffer."""

    name = "ukernel.write"
    value = operand_def(TensorType)
    buffer = operand_def(MemRefType)
    assembly_format = "$value `,` $buffer attr-dict `:` type($value) `,` type($buffer)"

    def __init__(self, value: SSAValue, buffer: SSAValue):
        super().__init__(operands=[value, buffer])

    def verify_(self) -> None:
        _check_same_shape(self.buffer, self.value, self.name)


def _check_same_shape(buffer: SSAValue, tensor: SSAValue, what: str) -> None:
    if not isinstance(tensor.type, TensorType):
        raise VerifyException(f"{what}: expected a tensor, got {tensor.type}")
    typed = cast("TensorType[Attribute]", tensor.type)
    expected = buffer_type(typed.element_type, sizes_of(typed))
    if buffer_of(buffer) != expected:
        raise VerifyException(f"{what}: expected {expected} for {typed}, got {buffer.type}")


@irdl_op_definition
class PlanOp(BufferedOp):
    """A program: launches over its inputs, temporaries and outputs, in order; and in loops and
    branches, see kernel_control.py."""

    name = "ukernel.plan"
    input_names = opt_prop_def(ArrayAttr[StringAttr])
    """The names that the program's author gave the inputs."""
    donated = opt_prop_def(ArrayAttr[IntegerAttr])
    """The positions of inputs that the plan may write over: their caller needs them no more."""
    workspace = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))
    """Bytes of storage that the temporaries share; set by plan-memory."""
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        symbols: Sequence[Expr],
        buffer_sizes: Sequence[Sequence[Size]],
        body: Block,
        input_names: Sequence[str] | None = None,
    ):
        names = None if input_names is None else ArrayAttr(list(map(StringAttr, input_names)))
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "symbols": SizesAttr(tuple(symbols)),
                "buffer_sizes": ArrayAttr([SizesAttr(tuple(s)) for s in buffer_sizes]),
                "input_names": names,
                "workspace": _ZERO,
            },
            regions=[Region(body)],
        )

    def verify_(self) -> None:
        super().verify_()
        if self.input_names and len(self.input_names.data) != len(self.buffers):
            raise VerifyException(
                f"expected {len(self.buffers)} input names, got {len(self.input_names.data)}"
            )
        last = len(self.buffers) - 1
        for position in self.donated.data if self.donated is not None else ():
            if not 0 <= (k := position.value.data) <= last:
                raise VerifyException(f"donated input {k}: expected 0 to {last}")
        if not isinstance(self.block.last_op, ReturnOp):
            raise VerifyException("a plan ends in ukernel.return")
        known = set(self.symbol_vars)
        for op in self.body.walk():
            if isinstance(op, OutputOp | ConstantOp) and op.parent is not self.block:
                raise VerifyException(f"{op.name} stands in a loop or branch of a plan")
            if isinstance(op, StorageOp | ViewOp):
                for s in op.sizes.data:
                    if isinstance(s, Expr) and not s.leaves <= known:
                        raise VerifyException(f"{op.name}: {s} is not over the plan's sizes")

    def print(self, printer: Printer) -> None:
        self.print_sizes_clause(printer)
        self.print_arguments(printer, "ins", 0, len(self.buffers))
        extra = dict(self.attributes)
        if self.input_names is not None:
            extra["input_names"] = self.input_names
        if self.donated is not None:
            extra["donated"] = self.donated
        if self.workspace != _ZERO:
            extra["workspace"] = self.workspace
        if extra:
            printer.print_string(" attributes ")
            printer.print_attr_dict(extra)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> PlanOp:
        name = parser.parse_symbol_name()
        signature = Signature(parser)
        signature.parse_buffers("ins")
        properties: dict[str, Attribute] = {"workspace": _ZERO, **signature.properties(name)}
        attributes = _parse_attributes(parser, properties, ("input_names", "donated", "workspace"))
        body = parser.parse_region(signature.arguments)
        return cls.create(properties=properties, attributes=attributes, regions=[body])


class StorageOp(IRDLOperation, ABC):
    """A buffer that a plan makes: printed with the sizes of its `?`."""

    sizes = prop_def(SizesAttr)
    result = result_def(MemRefType)

    def __init__(self, element: Attribute, sizes: Sequence[Size]):
        super().__init__(
            result_types=[buffer_type(element, sizes)],
            properties={"sizes": SizesAttr(tuple(sizes))},
        )

    def verify_(self) -> None:
        check_sizes(buffer_of(self.result), self.sizes, self.name)

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        print_buffer(printer, self.result.type, self.sizes.data, with_bounds=True)

    @classmethod
    def parse(cls, parser: Parser) -> StorageOp:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        buffer, sizes = parse_buffer(parser, None)
        return cls.create(result_types=[buffer], properties={"sizes": sizes}, attributes=attributes)


@irdl_op_definition
class TempOp(StorageOp):
    """`ukernel.temp at 64 : memref<4xf32>`: storage of the plan, at a byte offset once
    plan-memory has placed it."""

    name = "ukernel.temp"
    offset = opt_prop_def(IntegerAttr)

    def print(self, printer: Printer) -> None:
        if self.offset is not None:
            printer.print_string(f" at {self.offset.value.data}")
        super().print(printer)

    @classmethod
    def parse(cls, parser: Parser) -> StorageOp:
        offset = None
        if parser.parse_optional_keyword("at"):
            offset = IntegerAttr(parser.parse_integer(allow_boolean=False), i64)
        op = super().parse(parser)
        if offset is not None:
            op.properties["offset"] = offset
        return op


@irdl_op_definition
class OutputOp(StorageOp):
    """`ukernel.output : memref<4xf32>`: storage that the caller gives for a result."""

    name = "ukernel.output"


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """`ukernel.constant dense<[1, 2]> : memref<2xi32>`: a buffer of known contents."""

    name = "ukernel.constant"
    value = prop_def(DenseIntOrFPElementsAttr)
    result = result_def(MemRefType)
    traits = traits_def(Pure())

    def __init__(self, value: DenseIntOrFPElementsAttr):
        tensor = value.type
        buffer = buffer_type(tensor.element_type, tensor.get_shape())
        super().__init__(result_types=[buffer], properties={"value": value})

    def verify_(self) -> None:
        tensor, buffer = self.value.type, buffer_of(self.result)
        expected = buffer_type(tensor.element_type, tensor.get_shape())
        if buffer != expected:
            raise VerifyException(f"ukernel.constant: expected {expected}, got {buffer}")

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        print_dense(printer, self.value)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_keyword("dense")
        op = cls(parser.parse_dense_int_or_fp_elements_attr(None))
        op.attributes.update(attributes)
        return op


@irdl_op_definition
class ViewOp(IRDLOperation):
    """`ukernel.view %b : memref<4x8xf32> -> memref<32xf32>`: a buffer under another shape."""

    name = "ukernel.view"
    buffer = operand_def(MemRefType)
    sizes = prop_def(SizesAttr)
    result = result_def(MemRefType)
    traits = traits_def(Pure())

    def __init__(self, buffer: SSAValue, sizes: Sequence[Size]):
        super().__init__(
            operands=[buffer],
            result_types=[buffer_type(buffer_of(buffer).element_type, sizes)],
            properties={"sizes": SizesAttr(tuple(sizes))},
        )

    def verify_(self) -> None:
        source, result = buffer_of(self.buffer), buffer_of(self.result)
        check_sizes(result, self.sizes, self.name)
        if source.element_type != result.element_type:
            raise VerifyException(f"a view keeps the element type: {source} -> {result}")
        if DYNAMIC_INDEX not in (*source.get_shape(), *result.get_shape()):
            before, after = (element_count(t.get_shape()) for t in (source, result))
            if before != after:
                raise VerifyException(f"a view keeps the elements: {before} -> {after}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.buffer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)
        printer.print_string(" -> ")
        print_buffer(printer, self.result.type, self.sizes.data, with_bounds=True)

    @classmethod
    def parse(cls, parser: Parser) -> ViewOp:
        unresolved = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(unresolved, parser.parse_type())
        parser.parse_punctuation("->")
        buffer, sizes = parse_buffer(parser, None)
        return cls.create(
            operands=[operand],
            result_types=[buffer],
            properties={"sizes": sizes},
            attributes=attributes,
        )


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """`ukernel.launch @r_4 ins(%x : memref<4x8xf32>) outs(%t : memref<4xf32>)`: run a kernel."""

    name = "ukernel.launch"
    kernel = prop_def(SymbolRefAttr)
    sizes = var_operand_def(IndexType)
    inputs = var_operand_def(MemRefType)
    outputs = var_operand_def(MemRefType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        kernel: str,
        sizes: Sequence[SSAValue],
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
    ):
        super().__init__(
            operands=[list(sizes), list(inputs), list(outputs)],
            properties={"kernel": SymbolRefAttr(kernel)},
        )

    def verify_(self) -> None:
        table = self.parent_op()
        while table is not None and not isinstance(table, ModuleOp):
            table = table.parent_op()
        if table is None:
            return
        name = self.kernel.string_value()
        target = lookup_kernel(table, self.kernel)
        if target is None:
            raise VerifyException(f"there is no kernel @{name}")
        got = [o.type for o in self.operands]
        if isinstance(target, KernelOp):
            expected, outputs = [a.type for a in target.block.args], target.outputs.value.data
            fits = list(map(signless_type, expected)) == list(map(signless_type, got))
        else:  # linearized: which buffers it writes is no longer known
            expected, outputs = list(target.function_type.inputs), len(self.outputs)
            fits = expected == list(map(linear_type, got))
        if not fits or len(self.outputs) != outputs:
            raise VerifyException(
                f"@{name} expects ({', '.join(map(str, expected))}) with {outputs} outputs, got "
                f"({', '.join(map(str, got))}) with {len(self.outputs)}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.kernel)
        if self.sizes:
            printer.print_string(" sizes(")
            printer.print_list(self.sizes, printer.print_ssa_value)
            printer.print_string(")")
        _print_typed(printer, "ins", self.inputs)
        _print_typed(printer, "outs", self.outputs)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        kernel = parser.parse_attribute()
        if not isinstance(kernel, SymbolRefAttr):
            parser.raise_error(f"expected a kernel's symbol, got {kernel}")
        sizes: list[SSAValue] = []
        if parser.parse_optional_keyword("sizes"):
            sizes = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN,
                lambda: parser.resolve_operand(parser.parse_unresolved_operand(), IndexType()),
            )
        inputs = _parse_typed(parser, "ins")
        outputs = _parse_typed(parser, "outs")
        op = cls("", sizes, inputs, outputs)
        op.properties["kernel"] = kernel
        op.attributes.update(parser.parse_optional_attr_dict())
        return op


def signless_type(type_: Attribute) -> Attribute:
    """A memref of unsigned integers as one of the same bits; any other type as it is.

    rangeify makes a kernel's buffers signless, while the plan keeps what its author wrote.
    """
    if not isinstance(type_, MemRefType):
        return type_
    buffer = cast("MemRefType[Attribute]", type_)
    row = element_type(buffer.element_type)
    if row is None or row.kind != "unsigned":
        return buffer
    return MemRefType(signless(row).attribute, buffer.get_shape())


def linear_type(type_: Attribute) -> Attribute:
    """A buffer's type after linearize: signless, and flat where an inner size is dynamic."""
    plain = signless_type(type_)
    if not isinstance(plain, MemRefType):
        return plain
    buffer = cast("MemRefType[Attribute]", plain)
    if DYNAMIC_INDEX in buffer.get_shape()[1:]:
        return MemRefType(buffer.element_type, [DYNAMIC_INDEX])
    return buffer


def lookup_kernel(module: ModuleOp, symbol: SymbolRefAttr) -> KernelOp | FuncOp | None:
    """The kernel of a module with this symbol, also once it is a function; or None.

    A kernel for a GPU becomes a gpu.func in a gpu.module, which has the properties of a FuncOp.
    """
    found: Operation | None = module
    for name in (symbol.root_reference, *symbol.nested_references.data):
        inside = found.regions[0].blocks[0].ops if found.regions and found.regions[0].blocks else ()
        found = next((op for op in inside if op.get_attr_or_prop("sym_name") == name), None)
        if found is None:
            return None
    is_kernel = isinstance(found, KernelOp | FuncOp) or found.name == "gpu.func"
    return cast("KernelOp | FuncOp", found) if is_kernel else None


def _parse_attributes(
    parser: Parser, properties: dict[str, Attribute], names: Sequence[str]
) -> dict[str, Attribute]:
    """Parse `attributes {…}`; those with `names` go to the properties, the others are returned."""
    given = parser.parse_optional_attr_dict_with_keyword()
    attributes = dict(given.data) if given else {}
    properties |= {name: attributes.pop(name) for name in names if name in attributes}
    return attributes


def _print_typed(printer: Printer, word: str, values: Sequence[SSAValue]) -> None:
    printer.print_string(f" {word}(")
    printer.print_list(values, printer.print_ssa_value)
    if values:
        printer.print_string(" : ")
        printer.print_list([v.type for v in values], printer.print_attribute)
    printer.print_string(")")


def _parse_typed(parser: Parser, word: str) -> list[SSAValue]:
    parser.parse_keyword(word)
    parser.parse_punctuation("(")
    if parser.parse_optional_punctuation(")"):
        return []
    none = parser.Delimiter.NONE
    unresolved = parser.parse_comma_separated_list(none, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(none, parser.parse_type)
    parser.parse_punctuation(")")
    if len(unresolved) != len(types):
        parser.raise_error(f"{len(unresolved)} operands have {len(types)} types")
    return [parser.resolve_operand(u, t) for u, t in zip(unresolved, types, strict=True)]


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """`ukernel.return %o : memref<4xf32>`: the buffers that hold a plan's results."""

    name = "ukernel.return"
    values = var_operand_def(MemRefType)
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[list(values)])


_ZERO = IntegerAttr(0, i64)

UKernel = Dialect(
    "ukernel",
    [
        PlanOp, KernelOp, ReadOp, WriteOp, TempOp, OutputOp, ConstantOp, ViewOp, LaunchOp, ReturnOp,
        *CONTROL_OPS,
    ],
    [],
)  # fmt: skip
