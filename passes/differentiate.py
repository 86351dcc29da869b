"""differentiate: adds the gradient of a function on tensors, as another function.

`function` names the function, if there are several; `wrt` its arguments by name or number, all
of float type if none are given; `of` the number of the result. The new function, @NAME_gradient or
what `into` says, takes the same arguments and gives the results and then the gradients, one an
argument (only the gradients with `values=false`). A result of several elements has a last
argument more, the weights of its elements; one of a single element has the weight 1.

Values of the function are used, not computed again. Gradients of gradients: run the pass on
@NAME_gradient. The rules are those of gradient_rules.py; symbolic sizes stay symbolic.

    func.func @f(%x: tensor<4xf32>) -> tensor<f32> {
      %0 = utensor.mul %x, %x : tensor<4xf32>
      %1 = utensor.reduce add %0 axes [0] : tensor<4xf32> -> tensor<f32>
      func.return %1 : tensor<f32>
    }
  =>  (besides)
    func.func @f_gradient(%x: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
      %0 = utensor.mul %x, %x : tensor<4xf32>
      %1 = utensor.reduce add %0 axes [0] : tensor<4xf32> -> tensor<f32>
      %2 = utensor.constant 1.0 : tensor<4xf32>
      %3 = utensor.mul %2, %x : tensor<4xf32>
      %4 = utensor.add %3, %3 : tensor<4xf32>
      func.return %1, %4 : tensor<f32>, tensor<4xf32>
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects.errors import UopcError
from uopc.dialects.locations import nearest_location
from uopc.dialects.op_text import op_text
from uopc.dialects.sizes import element_count, sizes_of
from uopc.dialects.tensor_build import build_op, plain_op
from uopc.dialects.tensor_elementwise import element_of, tensor_of
from uopc.passes.dce import erase_dead_ops
from uopc.passes.gradient_rules import backpropagate
from uopc.passes.op_builder import OpBuilder, Shape
from uopc.passes.symbol_names import SymbolNames


class _Value:
    """A value of the new function; see op_builder.Value. Other dialects' ops are leaves that
    are not tracked, or have no rule."""

    __slots__ = ("attributes", "op", "shape", "sources", "ssa", "tracked", "type")

    def __init__(
        self,
        ssa: SSAValue,
        op: str,
        attributes: tuple[Any, ...],
        sources: tuple[_Value, ...],
        tracked: bool,
    ) -> None:
        self.ssa = ssa
        self.op = op
        self.attributes = attributes
        self.sources = sources
        self.tracked = tracked
        self.shape: Shape = ()
        self.type = ""
        if isinstance(ssa.type, TensorType):
            tensor = tensor_of(ssa)
            self.shape, self.type = sizes_of(tensor), element_of(tensor).name


class _Function(OpBuilder[_Value]):
    """The ops of a function as values, and more of them, put before its return."""

    def __init__(self, block: Block, wrt: Sequence[BlockArgument]) -> None:
        self._block = block
        self._known: dict[object, _Value] = {}
        """Values by what computes them: what is equal is computed once."""
        self.order: list[_Value] = []
        """Values that gradients flow through, sources first."""
        self.of: dict[SSAValue, _Value] = {}
        self._at: Operation | None = None
        for argument in block.args:
            self._add(argument, "leaf", (), (), argument in wrt)
        for op in block.ops:
            if not isinstance(op, ReturnOp):
                self._read(op)

    def _read(self, op: Operation) -> None:
        # What an op inside of a region reads, the op reads.
        sources = tuple([self.of[o] for each in op.walk() for o in each.operands if o in self.of])
        plain = plain_op(op)
        name, attributes = plain or (op.name, ())
        tracked = any(s.tracked for s in sources) and attributes != ("detach",)
        for result in op.results:
            value = self._add(result, name, attributes, sources, tracked)
            if plain is not None:
                self._known.setdefault(_key(name, sources, attributes), value)

    def _add(
        self,
        ssa: SSAValue,
        op: str,
        attributes: tuple[Any, ...],
        sources: tuple[_Value, ...],
        tracked: bool,
    ) -> _Value:
        value = self.of[ssa] = _Value(ssa, op, attributes, sources, tracked)
        if tracked:
            self.order.append(value)
        return value

    def apply(
        self, op: str, sources: tuple[_Value, ...], attributes: tuple[Any, ...] = ()
    ) -> _Value:
        key = _key(op, sources, attributes)
        known = self._known.get(key)
        if known is None:
            new = build_op(op, [s.ssa for s in sources], attributes)
            if self._at is not None:
                new.location = self._at.location
            self._block.add_op(new)
            known = self._known[key] = _Value(new.results[0], op, attributes, sources, False)
        return known

    def stand_at(self, value: _Value) -> None:
        self._at = value.ssa.owner if isinstance(value.ssa.owner, Operation) else None

    def refuse(self, value: _Value, error: UopcError) -> UopcError:
        owner = value.ssa.owner
        if isinstance(owner, Operation):
            error.location = nearest_location(owner)
            error.op_text = op_text(owner)
        return error


def _key(op: str, sources: tuple[_Value, ...], attributes: tuple[Any, ...]) -> object:
    return (op, attributes, *map(id, sources))


@dataclass(frozen=True)
class DifferentiatePass(ModulePass):
    """Add a function that computes gradients of another.

    Raises UopcError: [no-gradient] for what has none, with the op and its place,
    [no-such-function], [bad-option].
    """

    name = "differentiate"

    function: str | None = None
    """The function to differentiate; the only public one if none is named."""
    wrt: tuple[str, ...] = ()
    """Arguments by name or number, from 0; all of float type if none are named."""
    of: int = 0
    """The number of the result, from 0."""
    into: str | None = None
    """The new function's name; NAME_gradient if none is given."""
    values: bool = True
    """Whether the function's results come before the gradients."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        function = _chosen(op, self.function)
        name = self.into or f"{function.sym_name.data}_gradient"
        if SymbolNames(op).unique(name) != name:
            raise UopcError(
                "bad-option", f"there is a @{name} already", hint="give another name with into=…"
            )
        new = function.clone()
        new.location = function.location
        _differentiate(new, self.wrt, self.of, self.values)
        new.properties["sym_name"] = type(function.sym_name)(name)
        op.body.block.insert_op_after(new, function)


def _chosen(module: ModuleOp, name: str | None) -> FuncOp:
    functions = [f for f in module.body.block.ops if isinstance(f, FuncOp) and f.body.blocks]
    names = [f.sym_name.data for f in functions]
    if name is not None:
        found = [f for f in functions if f.sym_name.data == name]
    else:
        found = [f for f in functions if f.sym_visibility is None]
    if len(found) != 1:
        raise UopcError(
            "no-such-function",
            f"there is no function @{name} with a body"
            if name is not None
            else f"the module has {len(found)} public functions",
            hint=f"choose one with function=…: {', '.join(names)}"
            if names
            else "expected a func.func on tensors",
        )
    return found[0]


def _differentiate(function: FuncOp, wrt: Sequence[str], of: int, values: bool) -> None:
    """Make a function the one that gives its own gradients."""
    if len(function.body.blocks) != 1:
        raise _error(function, f"@{function.sym_name.data} has several blocks", "expected one")
    block = function.body.block
    last = block.last_op
    assert isinstance(last, ReturnOp)
    if not 0 <= of < len(last.operands):
        raise UopcError(
            "bad-option",
            f"there is no result {of}",
            hint=f"@{function.sym_name.data} has {len(last.operands)}, counted from 0",
        )
    arguments = _arguments(function, wrt)
    make = _Function(block, arguments)
    root = make.of[last.operands[of]]
    _check_float(root, function, f"result {of}")
    if not root.tracked:
        raise _error(function, f"result {of} depends on none of the arguments", "choose others")
    results = list(last.operands) if values else []
    last.detach()
    make.stand_at(root)
    if element_count(root.shape) == 1:
        seed = make.full_like(1.0, root)
    else:
        weights = block.insert_arg(root.ssa.type, len(block.args))
        weights.name_hint = "weights"
        seed = _Value(weights, "leaf", (), (), False)
    found = backpropagate(make, make.order, root, seed)
    for argument in arguments:
        value = make.of[argument]
        gradient = found.get(value) or make.full_like(0, value)
        results.append(gradient.ssa)
    end = ReturnOp(*results)
    end.location = last.location
    last.erase()
    block.add_op(end)
    function.properties["function_type"] = FunctionType.from_lists(
        [a.type for a in block.args], [r.type for r in results]
    )
    erase_dead_ops(function)


def _arguments(function: FuncOp, wrt: Sequence[str]) -> list[BlockArgument]:
    arguments = list(function.body.block.args)
    if not wrt:
        found = [a for a in arguments if _has_floats(a)]
        if not found:
            raise _error(function, "no argument is a tensor of floats", "gradients need floats")
        return found
    chosen: list[BlockArgument] = []
    for word in wrt:
        found = [a for k, a in enumerate(arguments) if word in (str(k), a.name_hint)]
        if not found:
            names = ", ".join(a.name_hint or str(k) for k, a in enumerate(arguments))
            raise UopcError(
                "bad-option",
                f"@{function.sym_name.data} has no argument '{word}'",
                hint=f"its arguments are {names}; numbers count from 0",
            )
        if not _has_floats(found[0]):
            raise _error(function, f"argument '{word}' is {found[0].type}", "gradients need floats")
        chosen.append(found[0])
    return chosen


def _has_floats(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and element_of(tensor_of(value)).is_float


def _check_float(value: _Value, function: FuncOp, what: str) -> None:
    if not _has_floats(value.ssa):
        raise _error(function, f"{what} is {value.ssa.type}", "gradients need floats")


def _error(function: FuncOp, message: str, hint: str) -> UopcError:
    return UopcError("no-gradient", message, hint=hint, location=nearest_location(function))
