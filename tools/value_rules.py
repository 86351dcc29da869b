"""Which differences docs/numerics.md allows a pass to make, and the first one that it does not.

Bits are bits: a NaN equals any NaN, and every other number only itself, a zero with its sign. There
are two exceptions. A pass before linearize may reorder float sums and products, so what depends on
one is compared with a tolerance; and expand-math replaces transcendental functions, so what depends
on those is too. The tolerance is, of the largest number among the results,

    (64 + 8 * sqrt(n)) * eps, or 8 * eps for f16 and bf16

where n is the largest number of terms and eps the step of the type at 1; n * 2**-126 more where a
pass has put products of bf16 into pairs, since these take denormals for zeros. What follows a
comparison, a rounding or a cast to integers of such a value may jump: one element in a thousand is
let go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, func, scf
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from uopc.dialects import kernel as k
from uopc.dialects import loop
from uopc.dialects import tensor as t
from uopc.dialects import tensor_elementwise as e
from uopc.dialects.element_types import element_type
from uopc.dialects.kernel_control import ConditionOp, IfOp, WhileOp
from uopc.dialects.rounding import Array
from uopc.dialects.sizes import element_count_upper, sizes_of
from uopc.dialects.tensor_elementwise import element_of, tensor_of
from uopc.interpreters.programs import Program
from uopc.interpreters.scalar_floats import TRANSCENDENTAL
from uopc.passes.plan_storage import storages_of

EXACT, SUM, JUMP = 0, 1, 2
"""What may differ of a value: nothing, the last digits, or now and then all of it."""

_JUMPS: frozenset[type[Operation]] = frozenset((
    e.CmpltOp, e.CmpleOp, e.CmpeqOp, e.CmpneOp, e.FloorOp, e.CeilOp, e.TruncOp, e.RoundOp,
    e.SignOp, e.FloordivOp, e.ModOp, e.RemOp, e.CastOp, t.ArgreduceOp, t.GatherOp, t.ScatterOp,
    arith.CmpfOp, arith.FPToSIOp, arith.FPToUIOp, math_dialect.FloorOp, math_dialect.CeilOp,
    math_dialect.TruncOp, math_dialect.RoundEvenOp,
))  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """How one result is compared: its kind, and the number of terms of the longest sum."""

    kind: int = EXACT
    terms: int = 1
    pairs: bool = False
    """Whether products of bf16 are added in pairs afterwards."""

    def tolerance(self, dtype: np.dtype[Any]) -> float:
        """The largest difference, relative to the largest number of the result."""
        if self.kind == EXACT or not _is_float(dtype):
            return 0.0
        eps = float(_finfo(dtype).eps)
        return 8 * eps if dtype.itemsize == 2 else (64 + 8 * math.sqrt(self.terms)) * eps

    @property
    def lost(self) -> float:
        """How far results may be apart beside that, since denormals count as zeros."""
        return self.terms * 2.0**-126 if self.kind != EXACT and self.pairs else 0.0


_NEAR_OVERFLOW = 1024.0
"""Results within this factor of the largest number of a type may come from sums that overflow."""


def _finfo(dtype: np.dtype[Any]) -> Any:
    import ml_dtypes  # late: 20 ms

    return cast("Callable[..., Any]", ml_dtypes.finfo)(dtype)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


@dataclass(frozen=True)
class Difference:
    """The first element that differs."""

    result: int
    index: tuple[int, ...]
    expected: Any
    got: Any
    count: int
    total: int
    tolerance: float
    words: str = ""
    """What is wrong where there is no element to show."""

    def __str__(self) -> str:
        if self.words:
            return self.words
        at = f"[{', '.join(map(str, self.index))}]"
        text = (
            f"result {self.result} at {at} is {number(self.got)}, expected {number(self.expected)}"
        )
        if self.total > 1:
            text += f" ({self.count} of {self.total} elements differ)"
        return text


def number(value: Any) -> str:
    """A number with all of its digits."""
    scalar = np.asarray(value)
    if scalar.dtype.name == "bfloat16":
        return repr(float(scalar))
    return str(scalar[()])


def first_difference(
    expected: Mapping[int, Array], got: Mapping[int, Array], rules: Mapping[int, Rule]
) -> Difference | None:
    """The first element of the first result that differs by more than its rule allows."""
    for position in sorted(expected.keys() & got.keys()):
        rule = rules.get(position, Rule())
        found = difference(position, expected[position], got[position], rule)
        if found is not None:
            return found
    return None


def difference(position: int, expected: Array, got: Array, rule: Rule) -> Difference | None:
    """Where two arrays differ by more than a rule allows."""
    if expected.size != got.size or expected.dtype.itemsize != got.dtype.itemsize:
        words = (
            f"result {position} is {got.dtype} of shape {got.shape}, expected "
            f"{expected.dtype} of shape {expected.shape}"
        )
        return Difference(position, (), None, None, 0, 0, 0.0, words)
    if got.dtype != expected.dtype:  # signless integers
        got = got.view(expected.dtype)
    got = got.reshape(expected.shape)
    tolerance = rule.tolerance(expected.dtype)
    wrong = _wrong(expected, got, tolerance, rule.lost)
    count = int(wrong.sum())
    allowed = expected.size // 1000 if rule.kind == JUMP else 0
    if count <= allowed:
        return None
    index = tuple(int(n) for n in np.argwhere(wrong)[0])
    return Difference(position, index, expected[index], got[index], count, expected.size, tolerance)


def _wrong(expected: Array, got: Array, tolerance: float, lost: float) -> Array:
    if not _is_float(expected.dtype):
        return np.asarray(expected != got)
    unsigned = f"u{expected.dtype.itemsize}"
    with np.errstate(all="ignore"):
        a, b = (np.ascontiguousarray(x) for x in (expected, got))
        same = (a.view(unsigned) == b.view(unsigned)).reshape(expected.shape)
        wide, other = expected.astype(np.float64), got.astype(np.float64)
        same = same | (np.isnan(wide) & np.isnan(other))
        if tolerance == 0.0:
            return ~same
        finite = np.isfinite(wide) & np.isfinite(other)
        scale = float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))
        same = same | (np.abs(wide - other) <= tolerance * scale + lost)
        largest = max(scale, float(np.abs(other[np.isfinite(other)]).max(initial=0.0)))
        if largest > _finfo(expected.dtype).max / _NEAR_OVERFLOW:
            same = same | ~finite  # a partial sum may overflow in one order and not in another
        return np.asarray(~same)


# What depends on a sum.


def rules_of(
    module: ModuleOp, program: Program, pass_name: str, after: ModuleOp
) -> dict[int, Rule]:
    """How the results of a program are compared across a pass that turned `module` into `after`."""
    functions = pass_name == "expand-math"
    if not functions and (_is_linear(module) or pass_name == "linearize"):
        return {}
    taint = _Taint(module, functions=functions)
    if isinstance(program.op, func.FuncOp) and program.level == "utensor":
        kinds = taint.results_of_block(program.op.body.block.ops)
    elif isinstance(program.op, k.PlanOp):
        kinds = taint.results_of_plan(program.op)
    else:
        kind = max((taint.kind_of(op) for op in module.walk()), default=EXACT)
        kinds = dict.fromkeys(range(1 << 10), kind) if kind else {}
    pairs = any(isinstance(op, loop.PairOp) for op in after.walk())
    return {n: Rule(kind, taint.terms, pairs) for n, kind in kinds.items() if kind}


def _is_linear(module: ModuleOp) -> bool:
    """Whether the order of every float operation is fixed: no tensors, no ranges."""
    for op in module.walk():
        if isinstance(op, k.KernelOp) or op.name.startswith("utensor."):
            return False
    return True


class _Taint:
    """Follows what may differ through a module."""

    def __init__(self, module: ModuleOp, *, functions: bool) -> None:
        self.functions = functions
        self.terms = 1
        self.kernels = {
            op.sym_name.data: op
            for op in module.body.block.ops
            if isinstance(op, k.KernelOp | func.FuncOp)
        }

    def starts(self, op: Operation) -> bool:
        """Whether an op's own result may differ in the last digits."""
        if self.functions:
            return type(op) in TRANSCENDENTAL
        if isinstance(op, t.ReduceOp):
            row = element_of(tensor_of(op.operand))
            if row.is_float and op.kind.data in ("add", "mul"):
                whole = element_count_upper(sizes_of(tensor_of(op.operand)))
                kept = max(1, element_count_upper(sizes_of(tensor_of(op.result))))
                self.terms = max(self.terms, whole // kept)
                return True
        if isinstance(op, loop.ReduceOp):
            row = element_type(op.results[0].type)
            if row is not None and row.is_float and _sums(op):
                lengths = [_length(o) for o in op.over]
                self.terms = max(self.terms, int(np.prod(lengths, dtype=np.int64)))
                return True
        return False

    def kind_of(self, op: Operation) -> int:
        return SUM if self.starts(op) else EXACT

    def results_of_block(self, ops: Iterable[Operation]) -> dict[int, int]:
        """The kinds of what the last op returns."""
        return dict(enumerate(self._block(ops, {})))

    def _block(self, ops: Iterable[Operation], kinds: dict[SSAValue, int]) -> list[int]:
        """The kinds of what the last op takes, from those known outside."""
        last: Operation | None = None
        for op in ops:
            if isinstance(op, scf.WhileOp | scf.IfOp):
                self._control(op, kinds)
                last = op
                continue
            given = max((kinds.get(o, EXACT) for o in op.operands), default=EXACT)
            if given and type(op) in _JUMPS and _is_jump(op):
                given = JUMP
            kind = max(given, self.kind_of(op))
            for result in op.results:
                kinds[result] = kind
            last = op
        return [] if last is None else [kinds.get(o, EXACT) for o in last.operands]

    def _control(self, op: scf.WhileOp | scf.IfOp, kinds: dict[SSAValue, int]) -> None:
        """A loop's kinds grow until a step changes none. What a flag decides may jump."""
        if isinstance(op, scf.IfOp):
            flag = JUMP if kinds.get(op.cond, EXACT) else EXACT
            ends = [self._block(r.block.ops, kinds) for r in op.regions if r.blocks]
            for n, result in enumerate(op.results):
                kinds[result] = max(flag, *(end[n] for end in ends))
            return
        given = [kinds.get(v, EXACT) for v in op.arguments]
        while True:
            kinds.update(zip(op.before_region.block.args, given, strict=True))
            flag, *handed = self._block(op.before_region.block.ops, kinds)
            kinds.update(zip(op.after_region.block.args, handed, strict=True))
            ends = self._block(op.after_region.block.ops, kinds)
            grown = list(map(max, zip(given, ends, strict=True)))
            if grown == given:
                break
            given = grown
        for result, kind in zip(op.results, handed, strict=True):
            kinds[result] = JUMP if flag else kind

    def kernel(self, name: str, given: int) -> int:
        """The kind of what a kernel writes, from the kind of what it reads."""
        op = self.kernels.get(name)
        if op is None:
            return given
        inner = list(op.walk())
        kind = max([given, *(self.kind_of(o) for o in inner)])
        jumps = any(type(o) in _JUMPS and _is_jump(o) for o in inner)
        return JUMP if kind and jumps else kind

    def results_of_plan(self, plan: k.PlanOp) -> dict[int, int]:
        kinds: dict[SSAValue, int] = {}

        def kind_of(buffer: SSAValue) -> int:
            return max(kinds.get(s, EXACT) for s in storages_of(buffer))

        has_control = any(isinstance(op, WhileOp) for op in plan.body.walk())
        for _ in range(JUMP + 2 if has_control else 1):  # as often as a kind in a loop may grow
            flags: dict[Operation, int] = {}
            for op in plan.body.walk():
                if isinstance(op, k.LaunchOp):
                    given = max((kind_of(o) for o in op.inputs), default=EXACT)
                    kind = self.kernel(op.kernel.string_value(), given)
                    around = op.parent_op()
                    while isinstance(around, WhileOp | IfOp):
                        kind = max(kind, flags.get(around, EXACT))
                        around = around.parent_op()
                    for buffer in op.outputs:
                        for storage in storages_of(buffer):
                            kinds[storage] = max(kind, kinds.get(storage, EXACT))
                elif isinstance(op, IfOp):
                    flags[op] = JUMP if kind_of(op.flag) else EXACT
                elif isinstance(op, WhileOp):
                    last = cast(ConditionOp, op.before.block.last_op)
                    flags[op] = JUMP if kind_of(last.flag) else EXACT
        last = cast(k.ReturnOp, plan.block.last_op)
        return {n: kind_of(v) for n, v in enumerate(last.operands)}


def _sums(op: loop.ReduceOp) -> bool:
    return op.kind is None or op.kind.data in ("add", "mul", *loop.PRODUCT_KINDS)


def _length(index: SSAValue) -> int:
    owner = index.owner
    if not isinstance(owner, loop.RangeOp):
        return 1
    if owner.constant_end is not None:
        return owner.constant_end
    return 1 if owner.maximum is None else int(owner.maximum.value.data)


def _is_jump(op: Operation) -> bool:
    """A cast jumps only from floats to integers."""
    if not isinstance(op, e.CastOp):
        return True
    target = cast("TensorType[Any]", op.result.type).element_type
    row = element_type(target)
    return row is None or not row.is_float
