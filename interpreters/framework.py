"""All levels on xDSL's interpreter framework.

    interpreter = Interpreter(module)
    register_uopc_implementations(interpreter)
    (y,) = interpreter.call_op("softmax", (x,))

A call of a func.func runs it as a whole by the interpreter of its level. Arguments are numpy
arrays for tensors and memrefs (those are changed in place), and Python's or numpy's numbers, or
xDSL's number attributes, for the rest; results are numpy arrays and scalars. Single ops of
utensor, arith and math can be run by `run_op` on such values too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    impl,
    impl_callable,
    register_impls,
)
from xdsl.ir import Operation

from uopc.interpreters.linear import LinearProgram
from uopc.interpreters.scalars import SCALAR_RULES, constant_value, not_interpreted, scalar_function
from uopc.interpreters.tensor import TensorFunctions, run_function


def _plain(value: Any) -> Any:
    """A number of xDSL's attributes as Python's."""
    if isinstance(value, FloatAttr):
        return value.value.data
    if isinstance(value, IntegerAttr):
        return cast("IntegerAttr[Any]", value).value.data
    return value


@register_impls
class FunctionFunctions(InterpreterFunctions):
    """func.func and func.call: functions on tensors and functions of loops."""

    def __init__(self, symbols: Mapping[str, int] | None = None) -> None:
        self.symbols = dict(symbols or {})
        self._programs: dict[int, LinearProgram] = {}

    @impl_callable(func.FuncOp)
    def call_func(
        self, interpreter: Interpreter, op: func.FuncOp, args: PythonValues
    ) -> PythonValues:
        if not op.body.blocks:
            return interpreter.call_external(op.sym_name.data, op, args)
        name = op.sym_name.data
        values = [_plain(a) for a in args]
        types = (*op.function_type.inputs, *op.function_type.outputs)
        if types and all(isinstance(t, TensorType) for t in types):
            return tuple(run_function(interpreter.module, name, values, self.symbols))
        program = interpreter.get_data(
            FunctionFunctions, "linear", lambda: LinearProgram(interpreter.module)
        )
        return tuple(program.run(name, values))

    @impl(func.CallOp)
    def run_call(
        self, interpreter: Interpreter, op: func.CallOp, args: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        return interpreter.call_op(op.callee, args)


def _scalar(
    functions: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues
) -> PythonValues:
    function = scalar_function(op)
    if function is None:
        raise not_interpreted(op, "on numbers and vectors of them")
    with np.errstate(all="ignore"):
        made = function(*args)
    return tuple(made) if len(op.results) > 1 else (made,)


def _constant(
    functions: InterpreterFunctions,
    interpreter: Interpreter,
    op: arith.ConstantOp,
    args: PythonValues,
) -> PythonValues:
    return (constant_value(op.value, op.result.type),)


_implementations: dict[str, Callable[..., Any]] = {
    kind.name.replace(".", "_"): impl(kind)(_scalar) for kind in SCALAR_RULES
}
_implementations["arith_constant"] = impl(arith.ConstantOp)(_constant)

ScalarFunctions = register_impls(
    cast(
        "type[InterpreterFunctions]",
        type("ScalarFunctions", (InterpreterFunctions,), {**_implementations}),
    )
)
"""arith and math on numpy values."""


def register_uopc_implementations(
    interpreter: Interpreter, symbols: Mapping[str, int] | None = None
) -> None:
    """Register everything above; `symbols` are the values of symbolic sizes."""
    interpreter.register_implementations(TensorFunctions(symbols))
    interpreter.register_implementations(ScalarFunctions())
    interpreter.register_implementations(FunctionFunctions(symbols))
