"""Fixtures for all tests: tensor programs built op by op."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import settings
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, Region, SSAValue

from uopc.dialects import tensor as ut
from uopc.dialects import tensor_elementwise as ew
from uopc.dialects import tensor_movement as mv
from uopc.dialects.element_types import element_type_named
from uopc.dialects.sizes import Size, sizes_of, tensor_type
from uopc.passes.manager import run_passes
from uopc.passes.registry import pass_factories
from uopc.passes.resolve import resolve_pipeline

Shape = Sequence[Size]

# pytest --hypothesis-profile=long: other examples each time, and many more of them.
settings.register_profile("long", deadline=None, print_blob=True)


class GraphBuilder:
    """A function @main, built op by op. Composite methods use the textbook's primitive ops:
    subtraction is an add of a product with -1, exp is exp2 of a product, and so on."""

    def __init__(self) -> None:
        self.block = Block()

    def input(self, name: str, shape: Shape, element: str = "f32") -> SSAValue:
        type_ = tensor_type(element_type_named(element).attribute, tuple(shape))
        value = self.block.insert_arg(type_, len(self.block.args))
        value.name_hint = name
        return value

    def add_op(self, op) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def shape(self, x: SSAValue) -> tuple[Size, ...]:
        return sizes_of(x.type)

    # The dialect's ops.

    def op(self, name: str, *operands: SSAValue) -> SSAValue:
        """An elementwise op by its name: `add`, `exp2`, `where`."""
        kinds = {k.name.partition(".")[2]: k for k in ew.ELEMENTWISE_OPS}
        return self.add_op(kinds[name](*operands))

    def full(self, value: float, like: SSAValue) -> SSAValue:
        return self.add_op(ut.ConstantOp(value, like.type))

    def reduce(self, kind: str, x: SSAValue, *axes: int) -> SSAValue:
        return self.add_op(ut.ReduceOp(kind, x, axes))

    def reshape(self, x: SSAValue, *shape: Size) -> SSAValue:
        return self.add_op(mv.ReshapeOp(x, shape))

    def expand(self, x: SSAValue, *shape: Size) -> SSAValue:
        return self.add_op(mv.ExpandOp(x, shape))

    def permute(self, x: SSAValue, *order: int) -> SSAValue:
        return self.add_op(mv.PermuteOp(x, order))

    def stage(self, x: SSAValue, kind: str = "contiguous") -> SSAValue:
        return self.add_op(ut.StageOp(x, kind))

    # The textbook's primitives.

    def scaled(self, x: SSAValue, factor: float) -> SSAValue:
        return self.op("mul", x, self.full(factor, x))

    def exp(self, x: SSAValue) -> SSAValue:
        return self.op("exp2", self.scaled(x, 1.4426950408889634))

    def relu(self, x: SSAValue) -> SSAValue:
        zero = self.full(0.0, x)
        return self.op("where", self.op("cmplt", zero, x), x, zero)

    def keep(self, x: SSAValue, shape: Shape, axis: int) -> SSAValue:
        """A reduced value with its axis back, of size 1."""
        return self.reshape(x, *(1 if k == axis else n for k, n in enumerate(shape)))

    def softmax(self, x: SSAValue, axis: int = 1) -> SSAValue:
        shape = self.shape(x)
        top = self.scaled(self.keep(self.reduce("max", x, axis), shape, axis), -1.0)
        e = self.exp(self.op("add", x, self.expand(top, *shape)))
        total = self.op("recip", self.keep(self.reduce("add", e, axis), shape, axis))
        return self.op("mul", e, self.expand(total, *shape))

    def matmul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        (m, k), (_, n) = self.shape(a), self.shape(b)
        wide_a = self.expand(self.reshape(a, m, 1, k), m, n, k)
        wide_b = self.expand(self.reshape(self.permute(b, 1, 0), 1, n, k), m, n, k)
        return self.reduce("add", self.op("mul", wide_a, wide_b), 2)

    def mean(self, x: SSAValue, axis: int) -> SSAValue:
        shape = self.shape(x)
        return self.scaled(self.keep(self.reduce("add", x, axis), shape, axis), 1 / shape[axis])

    def layer_norm(self, x: SSAValue) -> SSAValue:
        shape = self.shape(x)
        minus = self.scaled(self.mean(x, 1), -1.0)
        centred = self.op("add", x, self.expand(minus, *shape))
        variance = self.mean(self.op("mul", centred, centred), 1)
        shifted = self.op("add", variance, self.full(1e-5, variance))
        inverse = self.op("recip", self.op("sqrt", shifted))
        return self.op("mul", centred, self.expand(inverse, *shape))

    def module(self, *results: SSAValue) -> ModuleOp:
        """The module of the function that returns these values."""
        self.block.add_op(func.ReturnOp(*results))
        types = FunctionType.from_lists(
            [a.type for a in self.block.args], [r.type for r in results]
        )
        return ModuleOp([func.FuncOp("main", types, Region(self.block))])


@pytest.fixture
def graph() -> GraphBuilder:
    """A new, empty function."""
    return GraphBuilder()


@pytest.fixture
def run_pipeline() -> Callable[[ModuleOp, str], ModuleOp]:
    """Runs passes given as text on a module, in place, verifying after each."""

    def run(module: ModuleOp, pipeline: str) -> ModuleOp:
        from uopc.dialects.registry import make_context

        passes = resolve_pipeline(pipeline, pass_factories())
        run_passes(make_context(), module, passes)
        return module

    return run


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Compiled code goes to a folder of this test run's own."""
    folder = str(tmp_path_factory.mktemp("cache"))
    before = os.environ.get("UOPC_CACHE")
    os.environ["UOPC_CACHE"] = folder
    yield folder
    if before is None:
        del os.environ["UOPC_CACHE"]
    else:
        os.environ["UOPC_CACHE"] = before
