"""Reference semantics of utensor on numpy arrays: docs/numerics.md, executable.

    TENSOR_SEMANTICS   what each op computes, by class
    run_function       run a func.func at the level of utensor
    TensorFunctions    the same, registered on xDSL's interpreter

An array has the dtype of its element type (`ElementType.numpy`) and the shape of its tensor, with
symbolic sizes replaced by what they are bound to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.interpreter import Interpreter, InterpreterFunctions, impl, register_impls
from xdsl.ir import Attribute, Block, Operation, SSAValue

from uopc.dialects import tensor as t
from uopc.dialects import tensor_elementwise as e
from uopc.dialects import tensor_movement as m
from uopc.dialects.element_types import ElementType, element_type_named
from uopc.dialects.errors import UopcError
from uopc.dialects.numbers import dense_array, scalar_value
from uopc.dialects.op_text import op_text
from uopc.dialects.rounding import Array
from uopc.dialects.sizes import sizes_of
from uopc.dialects.tensor_elementwise import element_of, tensor_of
from uopc.interpreters import movement, reductions, rounding
from uopc.interpreters.elementwise import BINARY, UNARY, elementwise
from uopc.interpreters.symbols import bind_symbols, concrete
from uopc.interpreters.tensor_control import CONTROL

Symbols = Mapping[str, int]
NO_SYMBOLS: Symbols = {}


class Semantics(Protocol):
    """What an op computes from its operands' arrays, under the values of its symbols."""

    def __call__(
        self, op: Any, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS, /
    ) -> Array: ...


def _row(value: SSAValue) -> ElementType:
    return element_of(tensor_of(value))


def _shape(value: SSAValue, symbols: Symbols) -> tuple[int, ...]:
    return concrete(sizes_of(tensor_of(value)), symbols)


def _elementwise(op: Operation, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    return elementwise(type(op), tuple(arrays), _row(op.operands[0]))


def _where(op: e.WhereOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    return np.where(*arrays)


def _cast(op: e.CastOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    with np.errstate(all="ignore"):
        return rounding.cast(arrays[0], _row(op.operand), _row(op.result))


def _bitcast(op: e.BitcastOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    return rounding.bitcast(arrays[0], _row(op.result))


def _reshape(op: Operation, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    return arrays[0].reshape(_shape(op.results[0], symbols))


def _permute(op: m.PermuteOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    return np.transpose(arrays[0], m.int_values(op.order))


def _expand(op: Operation, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    return np.broadcast_to(arrays[0], _shape(op.results[0], symbols))


def _flip(op: m.FlipOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    return np.flip(arrays[0], m.int_values(op.axes))


def _shrink(op: m.ShrinkOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    begins, ends = concrete(op.begins.data, symbols), concrete(op.ends.data, symbols)
    return movement.shrink(arrays[0], begins, ends, m.int_values(op.steps))


def _pad(op: m.PadOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    low, high = concrete(op.low.data, symbols), concrete(op.high.data, symbols)
    return movement.pad(arrays[0], low, high, scalar_value(op.value))


def _reduce(op: t.ReduceOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    axes = m.int_values(op.axes)
    return reductions.reduce(op.kind.data, arrays[0], axes, _row(op.operand))


def _argreduce(op: t.ArgreduceOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    axis = op.axis.value.data
    return reductions.argreduce(op.kind.data, arrays[0], axis, _row(op.operand), _row(op.result))


def _stage(op: t.StageOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    return arrays[0]


def _constant(op: t.ConstantOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    if (dense := op.dense) is not None:
        return dense_array(dense)
    assert op.splat is not None, "the verifier lets numbers and dense attributes through"
    value = np.asarray(scalar_value(op.splat)).astype(_row(op.result).numpy)
    return np.broadcast_to(value, _shape(op.result, symbols))


def _iota(op: t.IotaOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    axis, i64 = op.axis.value.data, element_type_named("i64")
    return movement.iota(_shape(op.result, symbols), axis, _row(op.result), i64)


def _gather(op: t.GatherOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    return reductions.gather(arrays[0], arrays[1], op.axis.value.data)


def _scatter(op: t.ScatterOp, arrays: Sequence[Array], symbols: Symbols = NO_SYMBOLS) -> Array:
    values, indices, updates = arrays
    axis = op.axis.value.data
    return reductions.scatter(op.kind.data, values, indices, updates, axis, _row(op.operand))


TENSOR_SEMANTICS: dict[type[Operation], Semantics] = {
    **dict.fromkeys((*UNARY, *BINARY), _elementwise),
    e.WhereOp: _where,
    e.CastOp: _cast,
    e.BitcastOp: _bitcast,
    m.ReshapeOp: _reshape,
    m.PermuteOp: _permute,
    m.ExpandOp: _expand,
    m.FlipOp: _flip,
    m.ShrinkOp: _shrink,
    m.PadOp: _pad,
    t.ReduceOp: _reduce,
    t.ArgreduceOp: _argreduce,
    t.StageOp: _stage,
    t.ConstantOp: _constant,
    t.IotaOp: _iota,
    t.GatherOp: _gather,
    t.ScatterOp: _scatter,
}
"""Arrays may be read-only views of each other: copy before changing one."""


Handler = Callable[[Operation, list[Any]], Sequence[Any]]
"""Runs an op that is not of utensor: the op and its operands' values to its results' values."""


def run_block(
    block: Block,
    arguments: Sequence[Any],
    symbols: Symbols,
    handler: Handler | None = None,
    outer: Mapping[SSAValue, Any] | None = None,
) -> list[Any]:
    """Run a block's ops in order; the values that its last op takes.

    Values are dropped after their last use. `outer` are values of the blocks around. Ops that are
    not of utensor, nor of tensor_control.py, go to `handler`.
    Raises UopcError [not-interpreted] for an op that nobody knows.
    """
    last_use = _last_uses(block)
    values: dict[SSAValue, Any] = {**(outer or {}), **zip_values(block, arguments)}
    operands: list[Any] = []
    for op in block.ops:
        operands = [values[operand] for operand in op.operands]
        if not op.regions:
            for operand in op.operands:
                if last_use[operand] is op:
                    values.pop(operand, None)
        semantics = TENSOR_SEMANTICS.get(type(op))
        if semantics is not None:
            results: Sequence[Any] = (semantics(op, operands, symbols),)
        elif (control := CONTROL.get(type(op))) is not None:

            def run(inner: Block, given: Sequence[Any]) -> list[Any]:
                return run_block(inner, given, symbols, handler, values)

            results = control(op, operands, run)
        elif handler is not None:
            results = handler(op, operands)
        else:
            raise UopcError(
                "not-interpreted",
                f"'{op.name}' has no meaning at the level of utensor",
                op_text=op_text(op),
                hint="run the function before it is lowered, or lower what calls it",
            )
        for result, value in zip(op.results, results, strict=True):
            if result in last_use:
                values[result] = value
    return operands


def zip_values(block: Block, arguments: Sequence[Any]) -> dict[SSAValue, Any]:
    """A block's arguments with their values."""
    return dict(zip(block.args, arguments, strict=True))


def _last_uses(block: Block) -> dict[SSAValue, Operation]:
    """The op of the block that uses a value last, be it in its regions."""
    last: dict[SSAValue, Operation] = {}
    for op in block.ops:
        for inner in op.walk() if op.regions else (op,):
            for operand in inner.operands:
                last[operand] = op
    return last


def find_function(module: ModuleOp, name: str) -> FuncOp:
    """The func.func of a module. Raises UopcError [no-function] if there is none with a body."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    for function in functions:
        if function.sym_name.data == name and function.body.blocks:
            return function
    known = ", ".join(f"@{f.sym_name.data}" for f in functions if f.body.blocks)
    raise UopcError(
        "no-function",
        f"there is no function @{name} with a body",
        hint=f"there are {known}" if known else "the module has no functions",
    )


def run_function(
    module: ModuleOp, name: str, inputs: Sequence[Array], symbols: Symbols | None = None
) -> list[Array]:
    """Run a func.func at the level of utensor on arrays; the arrays that it returns.

    Inputs have the dtypes and shapes of the function's arguments. Sizes are taken from the
    inputs' shapes where those tell them, and from `symbols`.

    Raises UopcError [bad-input] for inputs that do not fit, [index-unbound] for a size that
    nobody gives, [symbol-out-of-bounds], [no-function], and [not-interpreted] for ops of other
    dialects.
    """
    function = find_function(module, name)
    if len(function.body.blocks) != 1:
        raise UopcError(
            "not-interpreted",
            f"@{name} has {len(function.body.blocks)} blocks",
            hint="a function at the level of utensor is one block",
        )
    block = function.body.block
    arrays = [np.asarray(array) for array in inputs]
    types = [tensor_of(argument) for argument in block.args]
    check_dtypes(name, types, arrays)
    sizes = [sizes_of(type_) for type_ in types]
    bound = bind_symbols(name, sizes, [array.shape for array in arrays], symbols or {})
    if not isinstance(block.last_op, ReturnOp):
        raise UopcError("not-interpreted", f"@{name} does not end in func.return")
    return [np.array(array) for array in run_block(block, arrays, bound, _only_return)]


def _only_return(op: Operation, operands: list[Any]) -> Sequence[Any]:
    if isinstance(op, ReturnOp):
        return ()
    raise UopcError(
        "not-interpreted",
        f"'{op.name}' has no meaning at the level of utensor",
        op_text=op_text(op),
        hint="lower or inline it first: functions at this level hold utensor ops only",
    )


def check_dtypes(
    name: str, types: Sequence[TensorType[Attribute]], arrays: Sequence[Array]
) -> None:
    """There is an array of its dtype for each type. Raises UopcError [bad-input]."""
    if len(types) != len(arrays):
        raise UopcError("bad-input", f"@{name} takes {len(types)} inputs, got {len(arrays)}")
    for position, (type_, array) in enumerate(zip(types, arrays, strict=True)):
        dtype = element_of(type_).numpy
        if array.dtype != dtype:
            raise UopcError(
                "bad-input",
                f"input {position} of @{name} has dtype {array.dtype}, expected {dtype}",
                hint="convert it; nothing is converted silently",
            )


class _Framework(InterpreterFunctions):
    """utensor on xDSL's interpreter. `symbols` are the values of symbolic sizes."""

    def __init__(self, symbols: Symbols | None = None) -> None:
        self.symbols = dict(symbols or {})


def _implementation(semantics: Semantics) -> Callable[..., tuple[Any, ...]]:
    def run(
        functions: _Framework, interpreter: Interpreter, op: Operation, args: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        return (semantics(op, args, functions.symbols),)

    return run


TensorFunctions = register_impls(
    cast(
        "type[_Framework]",
        type(
            "TensorFunctions",
            (_Framework,),
            {
                op_type.name.replace(".", "_"): impl(op_type)(_implementation(semantics))
                for op_type, semantics in TENSOR_SEMANTICS.items()
            },
        ),
    )
)
"""Register with `interpreter.register_implementations(TensorFunctions(symbols))`."""
