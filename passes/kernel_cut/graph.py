"""A tensor function as kernelize sees it: checked, with what is live and what stands for what.

Some ops make no new elements. `stage` is the identity and `reshape` keeps the elements in order,
so the value behind a chain of them, its **base**, can hold the chain's contents in its buffer.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import SymbolVar
from uopc.dialects.locations import nearest_location
from uopc.dialects.op_text import op_name, op_text, value_text
from uopc.dialects.sizes import SizesAttr, sizes_of, symbols_in
from uopc.dialects.source_text import printable
from uopc.dialects.tensor import StageOp, UTensor
from uopc.dialects.tensor_elementwise import element_of
from uopc.dialects.tensor_movement import ReshapeOp
from uopc.passes.kernel_cut.control import (
    CONTROL_OPS,
    is_flag,
    prepare_control,
    uses_of,
    yielded,
)

TENSOR_OPS = frozenset(UTensor.operations)

NEAREST_FORMS: dict[str, str] = {
    "func.call": "inline the callee: a plan is one function",
    "scf.for": "scf.while, or utensor.reduce",
    "arith.constant": "utensor.constant",
    "arith.addf": "utensor.add",
    "arith.addi": "utensor.add",
    "arith.subf": "utensor.sub",
    "arith.subi": "utensor.sub",
    "arith.mulf": "utensor.mul",
    "arith.muli": "utensor.mul",
    "arith.divf": "utensor.div",
    "arith.divsi": "utensor.truncdiv",
    "arith.divui": "utensor.truncdiv",
    "arith.floordivsi": "utensor.floordiv",
    "arith.remsi": "utensor.rem",
    "arith.remui": "utensor.rem",
    "arith.maximumf": "utensor.max",
    "arith.minimumf": "utensor.min",
    "arith.cmpf": "utensor.cmplt, cmple, cmpeq or cmpne",
    "arith.cmpi": "utensor.cmplt, cmple, cmpeq or cmpne",
    "arith.select": "utensor.where",
    "arith.extf": "utensor.cast",
    "arith.truncf": "utensor.cast",
    "arith.sitofp": "utensor.cast",
    "arith.fptosi": "utensor.cast",
    "tensor.empty": "utensor.constant",
    "tensor.splat": "utensor.constant",
    "tensor.collapse_shape": "utensor.reshape",
    "tensor.expand_shape": "utensor.reshape",
    "tensor.reshape": "utensor.reshape",
    "tensor.extract_slice": "utensor.shrink",
    "tensor.pad": "utensor.pad",
    "tensor.gather": "utensor.gather",
    "linalg.matmul": "utensor.expand, utensor.mul and utensor.reduce add",
    "linalg.generic": "elementwise utensor ops and utensor.reduce",
    "linalg.transpose": "utensor.permute",
    "linalg.broadcast": "utensor.expand",
    "linalg.fill": "utensor.constant",
    "linalg.reduce": "utensor.reduce",
}
"""What to write instead of ops that people are likely to have."""

_OWN_NAMES = {op.name.partition(".")[2]: op.name for op in UTensor.operations}


class TensorBlock:
    """A block that kernelize can cut: of a function, or of a loop or branch in one.

    Raises UopcError [unsupported-op].
    """

    def __init__(
        self,
        block: Block,
        results: Sequence[SSAValue],
        symbols: tuple[SymbolVar, ...] = (),
        *,
        is_nested: bool = True,
    ) -> None:
        self.block = block
        self.is_nested = is_nested
        self.symbols = symbols
        self.results = tuple(results)
        self.donated: set[SSAValue] = set()
        """The arguments of a function that its caller gives away."""
        self.ops: list[Operation] = []
        """The ops that results depend on, in order; loops and branches among them."""
        self.unstaged: dict[SSAValue, SSAValue] = {}
        """For the results of stages: what they stand for. Other values stand for themselves."""
        self.base: dict[SSAValue, SSAValue] = {}
        """For the results of stages and reshapes: the value whose elements they have."""
        self._read_block()
        self._computed = set(self.ops)

    @property
    def arguments(self) -> tuple[SSAValue, ...]:
        return tuple(self.block.args)

    def base_of(self, value: SSAValue) -> SSAValue:
        return self.base.get(value, value)

    def computes(self, value: SSAValue) -> bool:
        """Whether a value comes from an op of this block, rather than from outside."""
        return isinstance(value.owner, Operation) and value.owner in self._computed

    def owns(self, argument: BlockArgument) -> bool:
        """Whether an argument's buffer may be changed: what a loop carries, or an input that is
        donated."""
        return argument.owner is self.block and (self.is_nested or argument in self.donated)

    def inner(self, block: Block, results: Sequence[SSAValue] | None = None) -> TensorBlock:
        """A block inside of this one."""
        return TensorBlock(block, yielded(block) if results is None else results, self.symbols)

    def nothing(self) -> TensorBlock:
        """A block without ops: the other branch of what has only one."""
        return TensorBlock(Block(), (), self.symbols)

    def _read_block(self) -> None:
        needed = set(self.results)
        for op in reversed(list(self.block.ops)):
            if op.has_trait(IsTerminator) or is_flag(op):
                continue
            if isinstance(op, CONTROL_OPS):
                if not needed.isdisjoint(op.results):
                    needed.update(uses_of(op))
                    self.ops.append(op)
                continue
            _check_op(op)
            if not needed.isdisjoint(op.results):
                needed.update(op.operands)
                self.ops.append(op)
        self.ops.reverse()
        for op in self.ops:
            if isinstance(op, StageOp | ReshapeOp):
                operand = op.operand
                self.base[op.result] = self.base.get(operand, operand)
                if isinstance(op, StageOp):
                    self.unstaged[op.result] = self.unstaged.get(operand, operand)


class TensorFunction(TensorBlock):
    """A function that kernelize can cut.

    Raises UopcError [not-a-tensor-function], [unsupported-op] or [size-bounds-differ].
    """

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        block = _check_signature(function)
        last = block.last_op
        if not isinstance(last, func.ReturnOp):
            raise _refuse(function, "does not end in func.return", "return the results")
        prepare_control(block)
        super().__init__(block, last.operands, is_nested=False)
        self.symbols = _symbols(self)


def is_tensor_function(function: func.FuncOp) -> bool:
    """Whether a function is kernelize's business: tensors in its signature or its body."""
    signature = function.function_type
    if any(isinstance(t, TensorType) for t in (*signature.inputs, *signature.outputs)):
        return True
    return any(type(op) in TENSOR_OPS for block in function.body.blocks for op in block.ops)


def _check_signature(function: func.FuncOp) -> Block:
    if function.is_declaration:
        raise _refuse(
            function, "is declared, not defined", "give it a body, or remove the declaration"
        )
    if len(function.body.blocks) != 1:
        raise _refuse(
            function,
            f"has control flow ({len(function.body.blocks)} blocks)",
            "write it as one block; utensor.where chooses between two computed values",
        )
    block = function.body.block
    for position, argument in enumerate(block.args):
        _check_tensor(function, argument.type, f"argument {position}")
    for position, result in enumerate(function.function_type.outputs):
        _check_tensor(function, result, f"result {position}")
    return block


def _check_tensor(function: func.FuncOp, type_: Attribute, what: str) -> None:
    if not isinstance(type_, TensorType):
        raise _refuse(
            function,
            f"has {what} of type {type_}: expected a tensor",
            "a plan makes its own buffers: take and return tensors"
            if isinstance(type_, MemRefType)
            else "write a single number as a tensor of rank 0, such as tensor<f32>",
        )
    tensor = cast("TensorType[Attribute]", type_)
    try:
        element_of(tensor)
        sizes_of(tensor)
    except VerifyException as error:
        raise _refuse(
            function, f"has {what} that is no tensor of uopc: {error}", "change its type"
        ) from error


def _check_op(op: Operation) -> None:
    if type(op) in TENSOR_OPS:
        return
    name = op_name(op)
    if op.regions and name not in NEAREST_FORMS:
        reason, nearest = "has regions: control flow stands outside of plans", "utensor.where"
    else:
        reason, nearest = "is no tensor op of uopc", NEAREST_FORMS.get(name, "")
    if not nearest:
        near = difflib.get_close_matches(name.rpartition(".")[2], _OWN_NAMES, 1)
        nearest = _OWN_NAMES[near[0]] if near else "lower it to utensor ops before kernelize"
    raise UopcError(
        "unsupported-op",
        f"'{name}' cannot be part of a kernel: it {reason}",
        location=nearest_location(op),
        op_text=op_text(op),
        hint=f"nearest supported form: {nearest}",
    )


def _refuse(function: func.FuncOp, words: str, hint: str) -> UopcError:
    return UopcError(
        "not-a-tensor-function",
        f"@{printable(function.sym_name.data)} {words}",
        location=nearest_location(function),
        hint=hint,
    )


def _encoding(value: SSAValue) -> SizesAttr | None:
    """The list of sizes of a value's type, if it has symbolic ones."""
    if not isinstance(value.type, TensorType):
        return None
    encoding = cast("TensorType[Attribute]", value.type).encoding
    return encoding if isinstance(encoding, SizesAttr) else None


def sizes_attributes(op: Operation) -> Iterator[SizesAttr]:
    """All lists of sizes that an op's result types and properties hold."""
    for result in op.results:
        if (sizes := _encoding(result)) is not None:
            yield sizes
    for attribute in op.properties.values():
        if isinstance(attribute, SizesAttr):
            yield attribute


def _symbols(function: TensorFunction) -> tuple[SymbolVar, ...]:
    """The symbols in order of first appearance: in the arguments' types, then in the ops."""
    found: dict[str, SymbolVar] = {}

    def note(sizes: SizesAttr, where: Operation, what: str) -> None:
        for size in sizes.data:
            for symbol in symbols_in((size,)):
                first = found.setdefault(symbol.name, symbol)
                if first is not symbol:
                    raise UopcError(
                        "size-bounds-differ",
                        f"size '{printable(symbol.name)}' of {what} is {symbol.lower} to "
                        f"{symbol.upper}, and {first.lower} to {first.upper} before",
                        location=nearest_location(where),
                        hint="one name stands for one size: give both the same bounds, or rename "
                        "one of them",
                    )

    for argument in function.arguments:
        if (sizes := _encoding(argument)) is not None:
            note(sizes, function.function, value_text(argument))
    for top in function.ops:
        for op in top.walk() if top.regions else (top,):
            for sizes in sizes_attributes(op):
                note(sizes, op, f"'{op.name}'")
    return tuple(found.values())
