"""linearize for a GPU: a kernel whose target is cuda becomes a gpu.func of a gpu.module.

    ukernel.kernel @r_64 … attributes {target = "cuda"} {
      %i = uloop.range 64 block
      %k0 = uloop.range 4
      %k1 = uloop.range 32 lane
      %0 = uloop.load %x[%i, %k0 * 32 + %k1] : memref<64x128xf32>
      %1 = uloop.reduce add %0 over (%k0, %k1) : f32
      uloop.store %1, %o[%i] : memref<64xf32>
    }

becomes

    gpu.module @kernels {
      gpu.func @r_64(%x: memref<64x128xf32>, %o: memref<64xf32>) kernel {
        %i = gpu.block_id x
        %k1 = gpu.thread_id x
        %sum = scf.for %k0 … iter_args(%acc = 0.0) { … %x[%i * 128 + %k0 * 32 + %k1] … }
        %a = gpu.shuffle xor %sum, 16      %b = addf %sum, %a      … 8, 4, 2, 1
        scf.if thread 0 { memref.store %total, %o[%i] }
        gpu.return
      }
    }

Blocks and lanes are values, not loops (gpu_threads.py). A reduction over lanes ends in a fixed
tree: shuffles that exchange 16, 8, 4, 2, 1 lanes, then the same over the sums of the warps, which
meet in shared memory. All threads then have the same value. A shared tile is filled by all
threads, with a barrier before it is read and one before it is filled again. A barrier or a
shuffle is never inside of a branch that threads take differently: there guards stay with the
accesses. Buffers are flat, so that what splitting and merging did to indices cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from uopc.dialects import kernel, loop
from uopc.dialects.affine import to_affine_map
from uopc.dialects.element_types import element_type
from uopc.dialects.gpu_extensions import WORKGROUP, ShuffleModeEnum, ShuffleOp, install
from uopc.dialects.gpu_kernels import GRIDS, INDEX_BITS
from uopc.dialects.index_expr import Expr, as_expr, atom_expr
from uopc.passes.alignment import ALIGN, MOST
from uopc.passes.combine import combine
from uopc.passes.gpu_module import add_to_gpu_module
from uopc.passes.gpu_threads import (
    DIMENSIONS,
    WARP,
    ThreadLayout,
    bad_lanes,
    is_block,
    is_collective,
    is_lane,
    is_shared,
    lanes_of,
    reduced_lanes,
    thread_layout,
)
from uopc.passes.linearize import check_over_ranges
from uopc.passes.linearizer import Linearizer
from uopc.passes.loop_dag import LoopDag
from uopc.passes.loop_placement import Placement, Statement
from uopc.passes.loop_scopes import Scope
from uopc.passes.loop_values import Values
from uopc.passes.scalar_builder import CMPI, INDEX


def linearize_for_gpu(module: ModuleOp, op: kernel.KernelOp) -> SymbolRefAttr:
    """Put the gpu.func of a kernel into the module's gpu.module, which is made if need be.

    Returns the symbol by which it is launched.

    Raises UopcError [bad-lanes] where its blocks and lanes cannot run so.
    """
    install()
    dag = check_over_ranges(op)
    return add_to_gpu_module(module, GpuLinearizer(dag).gpu_function())


def _is_wide_index(op: Operation) -> bool:
    """Whether an op makes an index of a number that may not fit 32 bits."""
    if not isinstance(op, arith.IndexCastOp) or op.result.type != INDEX:
        return False
    row = element_type(op.input.type)
    return row is None or row.bits > 32


def alignments(op: kernel.KernelOp) -> list[int]:
    """Bytes that each buffer of a kernel is aligned to, in all launches of the module's plans.

    Arrays and the workspace have memory of their own, which the driver aligns; temporaries have
    places in the workspace.
    """
    found = [MOST] * len(op.buffers)
    module = op.parent_op()
    plans = [o for o in module.walk() if isinstance(o, kernel.LaunchOp)] if module else []
    for launch in plans:
        if launch.kernel.string_value() == op.sym_name.data:
            for position, value in enumerate([*launch.inputs, *launch.outputs]):
                while isinstance(value.owner, kernel.ViewOp):
                    value = value.owner.buffer
                if isinstance(value.owner, kernel.TempOp) and value.owner.offset is not None:
                    offset = value.owner.offset.value.data
                    found[position] = math.gcd(found[position], offset)
    return found


class _MeasuredValues(Values):
    """Values that know how large any index, or part of its computation, may get."""

    def __init__(self, dag: LoopDag, entry: Block, owner: GpuLinearizer) -> None:
        super().__init__(dag, entry)
        self.owner = owner

    def _sum(self, expr: Expr, scope: Scope) -> SSAValue:
        size = abs(expr.const) + sum(
            abs(factor) * max(map(abs, atom_expr(atom).bounds)) for atom, factor in expr.terms
        )
        self.owner.most = max(self.owner.most, size)
        return super()._sum(expr, scope)


class GpuLinearizer(Linearizer):
    """Builds the gpu.func of one kernel."""

    def __init__(self, dag: LoopDag) -> None:
        self.most = 0
        super().__init__(dag)
        self.statements = Placement(self.dag).statements
        self.layout: ThreadLayout = thread_layout(self.dag, self.statements)
        self.numbers: dict[object, SSAValue] = {}
        """What is made once for all of the kernel, by what it is."""
        self.fresh = True
        """No thread has read shared memory since the last barrier."""
        self.filled = False
        """Shared memory was written since the last barrier."""
        self.serial_loops = 0

    def new_scopes(self) -> Values:
        return _MeasuredValues(self.dag, self.entry, self)

    def flatten(self) -> None:
        """Index all buffers by one number."""
        for old in self.kernel.buffers:
            self.flatten_buffer(old)

    def gpu_function(self) -> gpu.FuncOp:
        """The function."""
        self.emit(self.statements, 0)
        self.entry.add_op(gpu.ReturnOp([]))
        types = [a.type for a in self.entry.args]
        threads = [self.layout.threads, 1, 1]
        made = gpu.FuncOp(
            self.kernel.sym_name.data,
            (types, []),
            Region(self.entry),
            kernel=True,
            known_block_size=threads,
        )
        made.attributes["arg_attrs"] = ArrayAttr(self.aligned_arguments())
        symbols = list(self.kernel.symbol_vars)
        made.attributes[GRIDS] = ArrayAttr(
            [
                AffineMapAttr(to_affine_map([as_expr(e) for e in grid], symbols))
                for grid in self.layout.grids
            ]
        )
        if self.most < 1 << 31 and not any(map(_is_wide_index, made.walk())):
            made.attributes[INDEX_BITS] = IntegerAttr(32, i64)
        if self.kernel.doc is not None:
            made.attributes["uopc.doc"] = StringAttr(self.kernel.doc.data)
        made.location = self.kernel.location
        return made

    def aligned_arguments(self) -> list[DictionaryAttr]:
        """The attributes of the arguments, and the alignment that all launches keep to."""
        sizes = len(self.kernel.size_arguments)
        entries = self.argument_attributes()
        for position, alignment in enumerate(alignments(self.kernel)):
            own = dict(entries[sizes + position].data)
            if alignment > 1:
                own[ALIGN] = IntegerAttr(alignment, i64)
            entries[sizes + position] = DictionaryAttr(own)
        return entries

    # Numbers of blocks and threads.

    def number(self, key: object, make: gpu.ThreadIdOp | gpu.BlockIdOp, name: str) -> SSAValue:
        found = self.numbers.get(key)
        if found is None:
            self.scopes.root.block.add_op(make)
            found = self.numbers[key] = make.result
            found.name_hint = name
        return found

    def thread(self) -> SSAValue:
        make = gpu.ThreadIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X))
        return self.number("thread", make, "thread")

    def block_number(self, dimension: int) -> SSAValue:
        name = DIMENSIONS[dimension]
        make = gpu.BlockIdOp(gpu.DimensionAttr(gpu.DimensionEnum(name)))
        return self.number(("block", dimension), make, f"block_{name}")

    def digit(self, extent: int, stride: int) -> SSAValue:
        """The thread's number modulo `extent`, divided by `stride`."""
        found = self.numbers.get((extent, stride))
        if found is None:
            b = self.scopes.root.builder
            found = self.thread()
            if extent < self.layout.threads:
                found = b.op(arith.RemUIOp, found, self.scopes.index(as_expr(extent)))
            if stride > 1:
                found = b.op(arith.DivUIOp, found, self.scopes.index(as_expr(stride)))
            self.numbers[(extent, stride)] = found
        return found

    def compare(self, predicate: str, value: SSAValue, number: Expr) -> SSAValue:
        """A comparison with a number of the kernel's sizes, made where all of it sees it."""
        key = (predicate, value, number)
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = self.scopes.root.builder.op(
                arith.CmpiOp,
                value,
                self.scopes.index(number),
                result=i1,
                properties={"predicate": CMPI[predicate]},
            )
        return found

    def both(self, a: SSAValue | None, b: SSAValue) -> SSAValue:
        """Both conditions; each is of the kernel's sizes and numbers only."""
        if a is None:
            return b
        key = ("and", a, b)
        found = self.numbers.get(key)
        if found is None:
            found = self.scopes.root.builder.op(arith.AndIOp, a, b)
            self.numbers[key] = found
        return found

    # Ranges that are values.

    def loop(self, range_op: loop.RangeOp, group: Sequence[Statement], depth: int) -> None:
        if self.filled and not all(is_shared(s.op) for s in group):
            self.barrier()
        if not (is_block(range_op) or is_lane(range_op)):
            super().loop(range_op, group, depth)
            return
        for statement in group:
            if len(statement.home) == depth:
                self.begin(statement, depth)
        self.bind(range_op, group, depth)
        for statement in group:
            if len(statement.home) == depth:
                self.finish(statement)

    def is_serial(self, range_op: loop.RangeOp) -> bool:
        return not (is_block(range_op) or is_lane(range_op)) and super().is_serial(range_op)

    def open_loop(
        self,
        range_op: loop.RangeOp,
        begin: Expr,
        end: Expr,
        group: Sequence[Statement],
        depth: int,
    ) -> None:
        if any(is_shared(s.op) and len(s.home) > depth for s in group):
            self.fresh = False  # the step before has read what this one fills
        self.serial_loops += 1
        super().open_loop(range_op, begin, end, group, depth)
        self.serial_loops -= 1

    def bind(self, range_op: loop.RangeOp, group: Sequence[Statement], depth: int) -> None:
        """Emit a group where a block or lane range has the value that this thread gives it."""
        condition: SSAValue | None = None
        if is_block(range_op):
            dimension = self.layout.dimensions[range_op]
            induction = self.block_number(dimension)
            end = self.dag.end_of(range_op)
            if len(self.layout.ends[dimension]) > 1:
                condition = self.compare("slt", induction, end)
        else:
            stride, extent = self.layout.strides[range_op], self.layout.extents[range_op]
            induction = self.digit(extent, stride)
            length = range_op.constant_end
            assert length is not None
            if -(-extent // stride) > length:
                condition = self.compare("slt", induction, as_expr(length))
                inside = [s for s in group if is_collective(s) and len(s.home) > depth]
                if inside and not self.keeps_warps_whole(range_op, inside):
                    raise bad_lanes(
                        self.kernel,
                        f"the lane '{range_op.result.name_hint}' leaves threads idle that have to "
                        "take part in what is inside of it",
                        f"expected {extent // stride} steps",
                    )
        self.scopes.stack.append(Scope(range_op, induction, self.scopes.top.block))
        self.done.difference_update(group)
        self.settle(condition, group, depth)
        self.scopes.stack.pop()

    def settle(self, condition: SSAValue | None, group: Sequence[Statement], depth: int) -> None:
        """Emit a group under a condition and the guards that the range just bound completes."""
        guards = self.guards_here(group, depth + 1)
        if any(c.bounds[1] < 0 for c in guards):
            self.done.update(group)
            return
        known = self.scopes.assumed
        self.scopes.assumed = known.union(guards)
        if guards:
            inside = self.scopes.all_at_least_zero(guards)
            if condition is not None:
                inside = self.scopes.top.builder.op(arith.AndIOp, condition, inside)
            condition = inside
        if condition is None:
            self.emit(group, depth + 1)
        else:
            self.branch(condition, group, self.carried(group, depth), depth + 1)
        self.scopes.assumed = known

    def guards_here(self, group: Sequence[Statement], depth: int) -> list[Expr]:
        """Not those that would part threads which have to meet inside: accesses ask for them."""
        if any(is_shared(s.op) and len(s.home) < depth for s in group):
            return []  # all of a shared tile is written, as threads read all of it
        guards = super().guards_here(group, depth)
        inside = [s for s in group if is_collective(s) and len(s.home) >= depth]
        if not inside:
            return guards
        return [
            c
            for c in guards
            if all(self.keeps_warps_whole(r, inside) for r in self.dag.free_in([c]) if is_lane(r))
        ]

    def keeps_warps_whole(self, lane: loop.RangeOp, inside: Sequence[Statement]) -> bool:
        """Whether a branch by a lane's index parts no threads that some statements need."""
        return self.layout.strides[lane] % WARP == 0 and all(
            not is_shared(s.op) and self.layout.width(s) <= WARP for s in inside
        )

    # Statements.

    def execute(self, statement: Statement) -> None:
        if self.filled and not is_shared(statement.op):
            self.barrier()
        if any(is_shared(needed.op) for needed in statement.needs):
            self.fresh = False
        condition = self.alone(statement)
        if condition is None:
            super().execute(statement)
            return
        scope = self.scopes.top
        inside = Block()
        self.scopes.stack.append(Scope(scope.range, scope.induction, inside))
        super().execute(statement)
        self.scopes.stack.pop()
        inside.add_op(scf.YieldOp())
        scope.block.add_op(scf.IfOp(condition, [], Region(inside), Region()))

    def alone(self, statement: Statement) -> SSAValue | None:
        """Where one of several threads, that all have the same to store, does."""
        if not isinstance(statement.op, loop.StoreOp | loop.UpdateOp | loop.TileOp):
            return None
        condition: SSAValue | None = None
        if not isinstance(statement.op, loop.TileOp):
            bound = {self.layout.dimensions[r] for r in statement.path if is_block(r)}
            for dimension in range(3):
                if dimension not in bound and self.layout.ends[dimension] != [1]:
                    number = self.block_number(dimension)
                    condition = self.both(condition, self.compare("eq", number, as_expr(0)))
        elif not is_shared(statement.op):
            return None
        lanes = lanes_of(statement)
        stride = self.layout.strides[lanes[-1]] if lanes else self.layout.threads
        if stride > 1:
            first = self.compare("eq", self.digit(stride, 1), as_expr(0))
            condition = self.both(condition, first)
        return condition

    def begin(self, statement: Statement, depth: int) -> None:
        if len(statement.home) == depth:
            if is_shared(statement.op) and not self.fresh:
                self.barrier()
            elif isinstance(statement.op, loop.UpdateOp) and self.layout.threads > 1:
                self.global_barrier(statement)
        super().begin(statement, depth)

    def global_barrier(self, statement: Statement) -> None:
        """An update follows the stores of other threads to the same buffer."""
        if any(isinstance(n.op, loop.StoreOp | loop.UpdateOp) for n in statement.needs):
            self.barrier()

    def finish(self, statement: Statement) -> None:
        if is_shared(statement.op):
            self.filled = True
        elif reduced_lanes(statement):
            op = statement.op
            assert isinstance(op, loop.ReduceOp)
            self.accumulators[statement] = self.across(
                op, self.accumulators[statement], self.layout.width(statement)
            )
        super().finish(statement)

    def allocate(self, op: loop.TileOp) -> None:
        if not is_shared(op):
            super().allocate(op)
            return
        shape = list(kernel.buffer_of(op.result).get_shape())
        made = self.shared(op.value.type, shape, op.result.name_hint or "tile")
        self.scopes.buffers[op.result] = (made, shape)
        self.scopes.root.values[op.result] = made

    def shared(self, element: Attribute, shape: Sequence[int], name: str) -> SSAValue:
        """Storage that the threads of a block share."""
        made = memref.AllocaOp.get(element, shape=shape, memory_space=WORKGROUP)
        self.scopes.root.block.add_op(made)
        made.memref.name_hint = name
        return made.memref

    def barrier(self) -> None:
        self.scopes.top.block.add_op(gpu.BarrierOp())
        self.fresh, self.filled = True, False

    # Reductions across threads.

    def across(self, op: loop.ReduceOp, values: list[SSAValue], width: int) -> list[SSAValue]:
        """The values of `width` threads combined; each of them gets the results."""
        values = self.butterfly(op, values, min(width, WARP))
        warps = width // WARP
        if warps < 2:
            return values
        shared = [self.shared(value.type, [warps], "sums") for value in values]
        if self.serial_loops:
            self.barrier()
        inside = Block()
        number = self.digit(self.layout.threads, WARP)
        for value, place in zip(values, shared, strict=True):
            inside.add_op(memref.StoreOp.create(operands=[value, place, number]))
        inside.add_op(scf.YieldOp())
        first = self.compare("eq", self.digit(WARP, 1), as_expr(0))
        self.scopes.top.block.add_op(scf.IfOp(first, [], Region(inside), Region()))
        self.barrier()
        self.fresh = False
        loads = [
            self.scopes.top.builder.append(
                memref.LoadOp.create(
                    operands=[place, self.digit(warps, 1)], result_types=[value.type]
                )
            )
            for value, place in zip(values, shared, strict=True)
        ]
        return self.butterfly(op, loads, warps)

    def butterfly(self, op: loop.ReduceOp, values: list[SSAValue], width: int) -> list[SSAValue]:
        b, root = self.scopes.top.builder, self.scopes.root.builder
        step = width // 2
        whole = root.attribute_constant(IntegerAttr(WARP, i32), i32)
        while step:
            offset = root.attribute_constant(IntegerAttr(step, i32), i32)
            others: list[SSAValue] = []
            for value in values:
                shuffle = ShuffleOp(value, offset, whole, ShuffleModeEnum.Xor)
                b.block.add_op(shuffle)
                others.append(shuffle.shuffle_result)
            values = self.pair(op, values, others)
            step //= 2
        return values

    def pair(
        self, op: loop.ReduceOp, own: list[SSAValue], others: list[SSAValue]
    ) -> list[SSAValue]:
        """Two threads' values as one, the same for both of them."""
        b = self.scopes.top.builder
        if op.kind is not None:
            kind = "add" if op.kind.data in loop.PRODUCT_KINDS else op.kind.data
            return [combine(b, kind, own[0], others)]
        # Of equals each thread prefers its own: the lower position settles it.
        mine, theirs = (
            self.scopes.combined(op, x, y, self.scopes.top, {})
            for x, y in ((own, others), (others, own))
        )
        first = b.cmpi("sle", mine[1], theirs[1])
        return [b.select(first, x, y) for x, y in zip(mine, theirs, strict=True)]
