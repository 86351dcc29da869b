"""The steps of a plan: kernels, their launches, loops and branches, for blocks that are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from uopc.dialects import kernel as ukernel
from uopc.dialects import kernel_control as control
from uopc.dialects.index_expr import SymbolVar
from uopc.dialects.kernel_signature import buffer_type
from uopc.dialects.sizes import sizes_of
from uopc.dialects.tensor import ConstantOp
from uopc.passes.kernel_cut.body import Kernel, build_kernel
from uopc.passes.kernel_cut.control import flag_tensor, tensor_of_value, tested, yielded
from uopc.passes.kernel_cut.storage import Cut, Loop
from uopc.passes.symbol_names import SymbolNames


@dataclass
class Shared:
    """What the blocks of one plan have in common."""

    symbols: SymbolNames
    sizes: Mapping[SymbolVar, SSAValue]
    """The plan's argument of each size."""
    buffers: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Where each tensor lies."""
    constants: dict[Attribute, SSAValue] = field(default_factory=dict[Attribute, SSAValue])
    constant_ops: list[Operation] = field(default_factory=list[Operation])
    kernels: list[ukernel.KernelOp] = field(default_factory=list[ukernel.KernelOp])
    temps: int = 0
    placed: set[SSAValue] = field(default_factory=set[SSAValue])
    """The temporaries that stand in the plan."""

    def temp(self, value: SSAValue) -> ukernel.TempOp:
        """Storage for a tensor."""
        tensor = tensor_of_value(value)
        temp = ukernel.TempOp(tensor.element_type, sizes_of(tensor))
        temp.result.name_hint = f"tmp{self.temps}"
        if isinstance(value.owner, Operation):
            temp.location = value.owner.location
        self.temps += 1
        return temp

    def read_from(self, value: SSAValue) -> SSAValue:
        """Where a kernel's input comes from: of a constant always its own buffer."""
        if isinstance(value.owner, ConstantOp):
            return self._constant(value.owner)
        return self.buffers[value]

    def _constant(self, op: ConstantOp) -> SSAValue:
        found = self.constants.get(op.value)
        if found is None:
            constant = ukernel.ConstantOp(op.value)  # pyright: ignore[reportArgumentType] (dense: only those are read)
            constant.location = op.location
            found = self.constants[op.value] = constant.result
            found.name_hint = f"const{len(self.constant_ops)}"
            self.constant_ops.append(constant)
        return found


class BlockPlanner:
    """Plans one block: `steps` are its ops when `plan` is done."""

    def __init__(
        self, shared: Shared, cut: Cut, destinations: Sequence[tuple[SSAValue, SSAValue]]
    ) -> None:
        """Each destination is a tensor, and the buffer that has it when the block is done."""
        self.shared = shared
        self.cut = cut
        self.steps: list[Operation] = []
        self.storage: dict[SSAValue, SSAValue] = {}
        """Buffers of chains that are written in place, and of what goes to a destination."""
        self.copied: list[tuple[SSAValue, SSAValue]] = []
        given: set[SSAValue] = set()
        for value, buffer in destinations:
            base = cut.tensors.base_of(value)
            root = cut.root(base)
            may_be_there = cut.tensors.computes(base) and (
                cut.tensors.computes(root) or self._is_at(root, buffer)
            )
            if base in given or not may_be_there or self._is_swapped(root):
                self.copied.append((value, buffer))
                continue
            given.add(base)
            if cut.tensors.computes(root):
                self.storage[root] = buffer

    def _is_at(self, argument: SSAValue, buffer: SSAValue) -> bool:
        return self.shared.buffers.get(argument) is buffer

    def _is_swapped(self, root: SSAValue) -> bool:
        """Whether a value is what a loop leaves in one of two buffers."""
        loop = self.cut.loops.get(root.owner) if isinstance(root.owner, Operation) else None
        return loop is not None and loop.swapped[_index(root)]

    def plan(self) -> list[Operation]:
        """The steps."""
        points = set(self.cut.points)
        for op in self.cut.tensors.ops:
            if isinstance(op, scf.WhileOp):
                self._while(op, self.cut.loops[op])
            elif isinstance(op, scf.IfOp):
                self._if(op, self.cut.branches[op])
            elif op.results[0] in points:
                self._point(op.results[0])
        for value, buffer in self.copied:
            self._fill(value, buffer)
        return self.steps

    # Buffers.

    def _buffer(self, value: SSAValue) -> SSAValue:
        """The buffer that a value is written to: of the chain that it belongs to, seen in its
        shape; made where it is needed first."""
        root = self.cut.root(value)
        found = self.storage.get(root)
        if found is None and root in self.shared.buffers:
            found = self.shared.buffers[root]
        if found is None:
            found = self.shared.temp(value).result
        self.storage[root] = found
        self._place(found)
        return self._seen_as(found, value)

    def _place(self, buffer: SSAValue) -> None:
        owner = buffer.owner
        if isinstance(owner, ukernel.TempOp) and buffer not in self.shared.placed:
            self.steps.append(owner)
            self.shared.placed.add(buffer)

    def _seen_as(self, buffer: SSAValue, value: SSAValue) -> SSAValue:
        """A buffer in a value's shape."""
        tensor = tensor_of_value(value)
        sizes = sizes_of(tensor)
        if buffer.type == buffer_type(tensor.element_type, sizes):
            return buffer
        view = ukernel.ViewOp(buffer, sizes)
        view.result.name_hint = buffer.name_hint
        self.steps.append(view)
        return view.result

    # Kernels.

    def _point(self, value: SSAValue) -> None:
        """Launch the kernel of a value; of several values when the last one's turn has come."""
        together = self.cut.together.get(value, (value,))
        if value is together[-1]:
            for each in together:
                self.shared.buffers[each] = self._buffer(each)
            self._launch(together, in_place=value in self.cut.same)

    def _fill(self, value: SSAValue, buffer: SSAValue) -> None:
        """Compute or copy a value into a buffer of its shape."""
        self._place(buffer)
        base = self.cut.tensors.base_of(value)
        if base in self.cut and not isinstance(base.owner, ConstantOp):
            self._launch((base,), self._seen_as(buffer, base), copies=True)
        else:
            self._launch((value,), buffer)

    def _launch(
        self,
        values: Sequence[SSAValue],
        buffer: SSAValue | None = None,
        *,
        copies: bool = False,
        in_place: bool = False,
    ) -> None:
        """Compute values into their buffers, or one into another buffer."""
        outputs = [buffer or self.shared.buffers[value] for value in values]
        written_to = dict(zip(values, outputs, strict=True))

        def hint_of(value: SSAValue, *, written: bool) -> str | None:
            return (written_to[value] if written else self.shared.read_from(value)).name_hint

        kernel: Kernel = build_kernel(
            self.cut.tensors,
            values,
            self.cut,
            hint_of,
            self.shared.symbols.unique,
            copies=copies,
            in_place=in_place,
        )
        self.shared.kernels.append(kernel.op)
        launch = ukernel.LaunchOp(
            kernel.op.sym_name.data,
            [self.shared.sizes[s] for s in kernel.symbols],
            [self.shared.read_from(v) for v in kernel.inputs],
            outputs,
        )
        launch.location = kernel.op.location
        self.steps.append(launch)

    # Loops and branches.

    def _while(self, op: scf.WhileOp, loop: Loop) -> None:
        """What is carried starts in buffers that the loop may change, filled before it."""
        starts: list[SSAValue] = []
        for k, (init, result) in enumerate(zip(op.arguments, op.results, strict=True)):
            if not loop.swapped[k]:
                buffer = self._buffer(result)
                if result not in self.cut.same:
                    self._fill(init, self._seen_as(buffer, init))
                starts.append(buffer)
            else:
                buffer = self.shared.temp(init).result
                self._fill(init, buffer)
                starts.append(buffer)
        carried: list[SSAValue] = []
        places: list[int] = []
        for k, buffer in enumerate(starts):
            if loop.swapped[k]:
                other = self.shared.temp(op.results[k])
                self._place(other.result)
                places.append(len(carried))
                carried += [buffer, other.result]
            else:
                places.append(-1)
        types = [v.type for v in carried]
        before, body = Block(arg_types=types), Block(arg_types=types)
        buffers = self.shared.buffers
        ends: list[tuple[SSAValue, SSAValue]] = []
        old_before, old_body = op.before_region.block, op.after_region.block
        for k, value in enumerate(yielded(old_body)):
            place = places[k]
            for block, old in ((before, old_before), (body, old_body)):
                if place >= 0:
                    block.args[place].name_hint = old.args[k].name_hint or starts[k].name_hint
                    block.args[place + 1].name_hint = "next"
                buffers[old.args[k]] = starts[k] if place < 0 else block.args[place]
            ends.append((value, starts[k] if place < 0 else body.args[place + 1]))
        flag = self.shared.temp(tested(op)).result
        planner = BlockPlanner(self.shared, loop.test, [(tested(op), flag)])
        before.add_ops(planner.plan())
        before.add_op(control.ConditionOp(flag))
        body.add_ops(BlockPlanner(self.shared, loop.body, ends).plan())
        body.add_op(control.YieldOp(_swapped(body.args)))
        new = control.WhileOp(carried, before, body)
        new.location = op.location
        self.steps.append(new)
        for k, result in enumerate(op.results):
            if places[k] < 0:
                buffers[result] = starts[k]
            else:
                buffers[result] = new.results[places[k]]
                buffers[result].name_hint = result.name_hint or starts[k].name_hint

    def _if(self, op: scf.IfOp, branches: tuple[Cut, Cut]) -> None:
        """Both regions write to the same buffers."""
        flag = flag_tensor(op, op.cond)
        base = self.cut.tensors.base_of(flag)
        if base in self.cut and not isinstance(base.owner, ConstantOp):
            condition = self._seen_as(self.shared.buffers[base], flag)
        else:
            condition = self.shared.temp(flag).result
            self._fill(flag, condition)
        results = [self._buffer(result) for result in op.results]
        regions: list[Block] = []
        for region, cut in zip(op.regions, branches, strict=True):
            values = yielded(region.block) if region.blocks else ()
            ends = list(zip(values, results, strict=False))
            block = Block(BlockPlanner(self.shared, cut, ends).plan())
            block.add_op(control.YieldOp())
            regions.append(block)
        new = control.IfOp(condition, *regions)
        new.location = op.location
        self.steps.append(new)
        self.shared.buffers.update(zip(op.results, results, strict=True))


def _swapped(arguments: Sequence[BlockArgument]) -> list[SSAValue]:
    """Each pair in the other order."""
    return [arguments[k ^ 1] for k in range(len(arguments))]


def _index(result: SSAValue) -> int:
    assert isinstance(result, OpResult)
    return result.index
