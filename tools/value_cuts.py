"""Smaller programs of a module: one program, one kernel, part of a function, fewer ops.

Each function gives modules that share nothing with the one they are made of, the most promising
first; whether they still show the error is for value_reducer.py to find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from uopc.dialects import kernel as k
from uopc.dialects import tensor as t
from uopc.dialects.element_types import element_type
from uopc.dialects.index_expr import atom_expr
from uopc.dialects.kernel_signature import buffer_of
from uopc.dialects.numbers import scalar
from uopc.dialects.rounding import Array
from uopc.interpreters.programs import Outcome, programs
from uopc.passes.dce import erase_dead_ops

Inputs = tuple[Array, ...] | None
Smaller = Iterator[tuple[ModuleOp, Inputs]]


def _symbol(op: Operation) -> str:
    name = op.properties.get("sym_name")
    return name.data if isinstance(name, StringAttr) else ""


def _with_needed(module: ModuleOp, root: Operation) -> ModuleOp:
    """A module of clones of an op and of all symbols that it needs, in their order."""
    table = {_symbol(op): op for op in module.body.block.ops}
    needed: set[Operation] = set()
    pending = [root]
    while pending:
        op = pending.pop()
        if op in needed:
            continue
        needed.add(op)
        for inner in op.walk():
            for attribute in (*inner.properties.values(), *inner.attributes.values()):
                if isinstance(attribute, SymbolRefAttr):
                    found = table.get(attribute.root_reference.data)
                    if found is not None:
                        pending.append(found)
    return ModuleOp([op.clone() for op in module.body.block.ops if op in needed])


def program_only(module: ModuleOp, name: str) -> ModuleOp:
    """A module of one program and what it needs."""
    for program in programs(module):
        if program.name == name:
            return _with_needed(module, program.op)
    return module.clone()


def kernel_only(module: ModuleOp, name: str) -> ModuleOp | None:
    """A module whose program runs one kernel on its buffers."""
    for op in module.body.block.ops:
        if _symbol(op) != name:
            continue
        made = _with_needed(module, op)
        kernel = next(o for o in made.body.block.ops if _symbol(o) == name)
        if isinstance(kernel, func.FuncOp):
            kernel.properties.pop("sym_visibility", None)
        elif isinstance(kernel, k.KernelOp):
            made.body.block.insert_op_before(_plan_of(kernel), kernel)
        return made
    return None


def _plan_of(kernel: k.KernelOp) -> k.PlanOp:
    """A plan that launches a kernel once."""
    symbols = kernel.symbol_vars
    sizes = [kernel.sizes_of_buffer(n) for n in range(len(kernel.buffers))]
    count = kernel.inputs_count
    block = Block(arg_types=[a.type for a in kernel.block.args[: len(symbols) + count]])
    for new, old in zip(block.args, kernel.block.args, strict=False):
        new.name_hint = old.name_hint
    outputs = [
        k.OutputOp(buffer_of(value).element_type, sizes[count + n])
        for n, value in enumerate(kernel.buffers[count:])
    ]
    block.add_ops(outputs)
    numbers, inputs = block.args[: len(symbols)], block.args[len(symbols) :]
    results = [o.result for o in outputs]
    block.add_op(k.LaunchOp(kernel.sym_name.data, numbers, inputs, results))
    block.add_op(k.ReturnOp(results))
    expressions = [atom_expr(s) for s in symbols]
    names = [a.name_hint or f"in{n}" for n, a in enumerate(inputs)]
    return k.PlanOp("main", expressions, sizes[:count], block, names)


# Parts of a function on tensors.


def cone_function(
    function: func.FuncOp, roots: Sequence[SSAValue], cuts: Sequence[SSAValue] = ()
) -> tuple[ModuleOp, list[SSAValue]]:
    """A function that returns `roots`, with arguments in place of `cuts`.

    Returns its module, and the value of the old function that each argument stands for.
    """
    last = function.body.block.last_op
    needed: set[Operation] = set()
    used: set[SSAValue] = set()
    pending = list(roots)
    while pending:
        value = pending.pop()
        if value in used:
            continue
        used.add(value)
        owner = value.owner
        if value not in cuts and isinstance(owner, Operation) and owner not in needed:
            needed.add(owner)
            pending.extend(owner.operands)
    arguments = [a for a in function.body.block.args if a in used]
    arguments += [v for v in dict.fromkeys(cuts) if v in used and v not in arguments]
    block = Block(arg_types=[a.type for a in arguments])
    mapping: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=True))
    for old, new in mapping.items():
        new.name_hint = old.name_hint
    for op in function.body.block.ops:
        if op in needed and op is not last:
            results = list(op.results)
            clone = op.clone(value_mapper={**mapping})
            block.add_op(clone)
            for old, new in zip(results, clone.results, strict=True):
                mapping.setdefault(old, new)
    block.add_op(func.ReturnOp(*(mapping[r] for r in roots)))
    types = FunctionType.from_lists([a.type for a in arguments], [r.type for r in roots])
    made = func.FuncOp(function.sym_name.data, types, Region(block))
    made.location = function.location
    names = [DictionaryAttr({"uopc.name": StringAttr(f"in{n}")}) for n in range(len(arguments))]
    made.arg_attrs = ArrayAttr(names)
    return ModuleOp([made]), arguments


def _tensor_function(module: ModuleOp) -> func.FuncOp | None:
    for program in programs(module):
        if program.level == "utensor" and isinstance(program.op, func.FuncOp):
            return program.op
    return None


def smaller_functions(module: ModuleOp, inputs: Inputs) -> Smaller:
    """Functions of one result, of an earlier value, or with arguments in place of some values."""
    function = _tensor_function(module)
    if function is None:
        return
    last = function.body.block.last_op
    assert last is not None
    values = list(last.operands)

    def made(roots: Sequence[SSAValue], cuts: Sequence[SSAValue], *, given: bool) -> Smaller:
        smaller, sources = cone_function(function, roots, cuts)
        if not given:
            yield smaller, None
            return
        for arrays in _values_of(module, function, inputs, sources):
            yield smaller, arrays

    for given in (False, True):
        if len(values) > 1:
            for value in dict.fromkeys(values):
                yield from made([value], [], given=given)
        for op in function.body.block.ops:
            if op is not last and values[0].owner is not op and not isinstance(op, t.ConstantOp):
                yield from made([op.results[0]], [], given=given)
        if len(values) == 1:
            for cut in _cuts(values[0]):
                yield from made(values, [cut], given=given)


def _cuts(root: SSAValue) -> list[SSAValue]:
    """The values that a value is made of, those it reads itself first."""
    found: dict[SSAValue, None] = {}
    pending = [root]
    while pending:
        value = pending.pop(0)
        owner = value.owner
        if isinstance(owner, Operation):
            for operand in owner.operands:
                is_made = isinstance(operand.owner, Operation)
                if is_made and not isinstance(operand.owner, t.ConstantOp) and operand not in found:
                    found[operand] = None
                    pending.append(operand)
    return list(found)


def _values_of(
    module: ModuleOp, function: func.FuncOp, inputs: Inputs, wanted: Sequence[SSAValue]
) -> Iterator[tuple[Array, ...]]:
    """The arrays that some values of a function have, for given inputs or those of seed 0."""
    from uopc.tools.value_cases import Source, case_of

    (program,) = programs(module)
    cases = Source().cases(program) if inputs is None else [case_of(program, inputs, "")]
    arguments: list[SSAValue] = list(function.body.block.args)
    complete, sources = cone_function(function, list(wanted) or arguments)
    positions = {a: n for n, a in enumerate(arguments)}
    (all_values,) = programs(complete)
    for case in cases:
        chosen = [case.inputs[positions[s]] for s in sources]
        outcome: Outcome = all_values.run(chosen, case.symbols)
        yield tuple(outcome.results[n] for n in range(len(wanted)))


# Fewer ops, at any level.


def in_helper(module: ModuleOp, position: int) -> bool:
    """Whether an op stands in a function of numbers that others call, as `@fmod_f64`.

    Those are called or not; without a part of them their loops may never end.
    """
    op: Operation | None = next(islice(module.walk(), position, None))
    while op is not None and not isinstance(op, func.FuncOp):
        op = op.parent_op()
    return (
        isinstance(op, func.FuncOp)
        and op.sym_visibility is not None
        and bool(op.function_type.outputs.data)
    )


def without_op(module: ModuleOp, position: int) -> Iterator[ModuleOp]:
    """Modules without one op, the position-th that a walk meets, and what only it needed.

    Its results become an operand of their type, or a constant.
    """
    for choice in range(4):
        clone = module.clone()
        op = next(islice(clone.walk(), position, None))
        if not _is_droppable(op):
            return
        if _drop(op, choice):
            erase_dead_ops(clone)
            yield clone
        if not op.results:
            return


def _is_droppable(op: Operation) -> bool:
    if isinstance(op, ModuleOp | func.FuncOp | k.KernelOp | k.PlanOp | k.LaunchOp | k.OutputOp):
        return False
    if op.has_trait(IsTerminator) or isinstance(op, arith.ConstantOp | t.ConstantOp | k.ReadOp):
        return False
    return op.parent is not None and not isinstance(op.parent.parent_op(), ModuleOp)


def _drop(op: Operation, choice: int) -> bool:
    """Do without an op; false if there is no such choice."""
    block = op.parent
    assert block is not None
    if op.results:
        constants: list[Operation] = []
        values: list[SSAValue] = []
        for result in op.results:
            operands = [o for o in op.operands if o.type == result.type]
            if choice < len(operands):
                values.append(operands[choice])
                continue
            if choice != 3 or (made := _constant(result.type)) is None:
                return False
            constants.append(made)
            values.append(made.results[0])
        block.insert_ops_before(constants, op)
        for result, value in zip(op.results, values, strict=True):
            result.replace_all_uses_with(value)
    block.erase_op(op, safe_erase=False)
    return True


def _constant(type_: Attribute) -> Operation | None:
    """A constant of ones."""
    if isinstance(type_, TensorType):
        return t.ConstantOp(1, type_)  # pyright: ignore[reportUnknownArgumentType]  # xDSL's generic
    row = element_type(type_)
    if row is None:
        return None
    return arith.ConstantOp.create(
        properties={"value": scalar(1, row.attribute)}, result_types=[type_]
    )
