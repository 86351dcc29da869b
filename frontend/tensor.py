"""Tensor: a lazy array with numpy's habits and gradients.

    from uopc import Tensor

    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    loss = (x @ x).relu().sum()
    loss.backward()
    print(loss.item(), x.grad.numpy())

Nothing is computed until a value is asked for (numpy, item, tolist, realize); then all that it
needs becomes one plan, compiled once for its structure. The methods stand in files by theme and
are attached in methods.py.
"""

from __future__ import annotations

import array
import math
import weakref
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from uopc.dialects.element_types import element_type_named
from uopc.frontend import core, nodes, tracing
from uopc.frontend.core import DTypeLike, array_node, bad, type_name
from uopc.frontend.graph import Array, Node, Shape, apply, buffer, donated, leaf
from uopc.frontend.methods import Methods
from uopc.frontend.realize import realize


class Tensor(Methods):
    """An array of one element type, computed when it is needed.

    `Tensor(data)` copies a number, nested lists, a numpy array or anything with `__array__`;
    `from_numpy` and `from_dlpack` share memory. Raises UopcError [wrong-type], [ragged-list],
    [unknown-dtype].
    """

    __slots__ = ("__weakref__", "_birth", "_grad", "_node", "weak")
    __array_priority__ = 1000  # numpy arrays leave operators to us

    _node: Node
    _grad: Tensor | None
    _birth: object
    weak: bool
    """A number of unknown value: it takes the type of the tensor it meets."""

    def __init__(
        self, data: object = 0.0, dtype: DTypeLike | None = None, requires_grad: bool = False
    ) -> None:
        name = None if dtype is None else type_name(dtype)
        if isinstance(data, Tensor):
            node = data.node if name is None else nodes.cast(data.node, name)
        else:
            node = array_node(_as_array(data), name)
        self._grad = None
        self._birth = tracing.current()
        self.weak = False
        self._node = node
        if requires_grad:
            self.requires_grad = True

    @classmethod
    def of_node(cls, node: Node) -> Tensor:
        """A tensor of a node of the lazy graph."""
        self = cls.__new__(cls)
        self._node = node
        self._grad = None
        self._birth = tracing.current()
        self.weak = False
        return self

    def __copy__(self) -> Tensor:
        """Another tensor of the same value, and of the same place in a graph of gradients."""
        return Tensor.of_node(self.node)

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickle and copy.deepcopy keep: the value, the type, and whether it is trained."""
        return _rebuilt, (self.detach().numpy(), self.element, self.requires_grad, self.grad)

    @property
    def node(self) -> Node:
        """The node of the lazy graph that has this tensor's value."""
        node = self._node
        if tracing.active:  # of any thread; mostly there is none, and this is asked often
            trace = tracing.current()
            if trace is not None and self._birth is not trace:
                node = trace.node_of(self)
        if node.tracked and not tracing.state.gradients:
            return apply("stage", (node,), ("detach",))
        return node

    # -- what it is --------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """The sizes of the axes."""
        return self._node.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._node.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type, as numpy's dtype."""
        return element_type_named(self._node.type).numpy

    @property
    def element(self) -> str:
        """The element type, as the IR spells it: f32, i1, ui8."""
        return self._node.type

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How much memory the elements take."""
        return self.size * element_type_named(self._node.type).bytes

    def element_size(self) -> int:
        """How many bytes one element takes."""
        return element_type_named(self._node.type).bytes

    def is_floating_point(self) -> bool:
        """Whether the elements are floats."""
        return element_type_named(self._node.type).is_float

    def numel(self) -> int:
        """The number of elements."""
        return self.size

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor of rank 0 has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        grad = ", requires_grad" if self._node.op == "leaf" else ""
        target = self._node.realized or self._node
        if target.array is not None and self.size <= 64:
            text = np.array2string(target.array, separator=", ", prefix="Tensor(")
            return f"Tensor({text}, {self.element}{grad})"
        return (
            f"<Tensor {self.element}[{sizes}]{grad}, {'lazy' if target.array is None else 'data'}>"
        )

    __hash__ = object.__hash__

    # -- its value ---------------------------------------------------------------------------------

    def realize(self, *others: Tensor) -> Tensor:
        """Compute it, and others with it, now."""
        Tensor.realize_all(self, *others)
        return self

    @staticmethod
    def realize_all(*tensors: Tensor) -> None:
        """Compute tensors in one plan. In a function that is being traced nothing happens: what
        the function changes and returns is computed when it runs."""
        if tracing.current() is not None:
            return
        realize([t._node for t in tensors])
        for t in tensors:
            t._settle()

    def _data(self) -> Array:
        node = self.node
        trace = tracing.current()
        if trace is not None:
            trace.read(node)
        if node.array is None:
            with tracing.untraced():
                realize([node])
            if trace is None:
                self._settle()
            node = node.realized or node
        assert node.array is not None
        return node.array

    def _settle(self) -> None:
        """Let go of the graph of a value that was computed, unless gradients need it."""
        node = self._node
        if node.realized is not None and not node.tracked:
            self._node = node.realized
        elif node.op == "leaf" and node.realized is not None:
            node.sources = ()

    def numpy(self) -> Array:
        """The elements as a numpy array of one's own."""
        return self._data().copy()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers, or one number for rank 0."""
        return self._data().tolist()

    def item(self) -> Any:
        """The one element as a Python number. Raises UopcError [wrong-operands] if there are
        more, or none."""
        if self.size != 1:
            raise bad("wrong-operands", f"item of {self.size} elements", "index one, or tolist()")
        return self._data().item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        data = self._data()
        if dtype is not None and data.dtype != dtype:
            return data.astype(dtype)
        if copy:
            return data.copy()
        view = data.view()
        view.flags.writeable = False
        return view

    def __dlpack__(self, **options: Any) -> Any:
        """The elements for another library: those themselves, marked as not to be written, if it
        knows that mark (DLPack 1.0) and asks for no copy; else a copy."""
        if (options.get("max_version") or (0, 0)) >= (1, 0) and options.get("copy") is not True:
            return self.__array__().__dlpack__(**options)
        if options.get("copy") is False:
            raise BufferError("without a mark against writing (DLPack 1.0) there is only a copy")
        return self.numpy().__dlpack__(**options)

    def data(self) -> memoryview:
        """The elements as a memoryview that cannot be written; no copy."""
        return memoryview(cast(Any, self.__array__()))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.element[0] in "fb" or self.ndim:
            raise TypeError("only whole numbers of rank 0 are indices")
        return int(self.item())

    @staticmethod
    def from_numpy(array: Array) -> Tensor:
        """A tensor on the memory of an array, where that is row-major and aligned; else a copy.
        Tensors never write there, but who writes to the array changes the tensor."""
        name = type_name(array.dtype)
        return Tensor.of_node(buffer(core.shared_or_copied(np.asarray(array), name), name))

    @staticmethod
    def from_dlpack(value: Any) -> Tensor:
        """The same for whatever exports DLPack."""
        return Tensor.from_numpy(np.from_dlpack(value))

    @staticmethod
    def from_buffer(data: Any, dtype: DTypeLike | None = None) -> Tensor:
        """A tensor on the memory of an object with Python's buffer protocol, in its own shape and
        type; with `dtype` a vector of its bytes read as such."""
        if dtype is None:
            view = memoryview(data)
            return Tensor.from_numpy(np.asarray(cast(Any, view)))
        row = element_type_named(type_name(dtype))
        return Tensor.from_numpy(np.frombuffer(data, row.numpy))

    # -- gradients ---------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are taken with respect to it, or flow through it."""
        return self._node.tracked

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if wanted and self._node.op != "leaf":
            if self.element not in ("f64", "f32", "f16", "bf16"):
                raise bad("wrong-dtype", f"{self.element} has no gradients", "cast to a float")
            self._become_leaf(self.node)
        elif not wanted and self._node.tracked:
            self._node = self.detach()._node

    def _become_leaf(self, value: Node) -> None:
        node = leaf(value)
        node.owner = weakref.ref(self)
        self._node = node

    @property
    def grad(self) -> Tensor | None:
        """What `backward` added up here."""
        trace = tracing.current()
        if trace is not None and self._birth is not trace:
            return trace.gradient_of(self)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        trace = tracing.current()
        if trace is not None and self._birth is not trace:
            trace.set_gradient(self, value)
        else:
            self._grad = value

    def detach(self) -> Tensor:
        """The same value, through which no gradient flows."""
        node = self.node
        return Tensor.of_node(apply("stage", (node,), ("detach",)) if node.tracked else node)

    def contiguous(self) -> Tensor:
        """The same value, with a buffer of its own that readers share."""
        return Tensor.of_node(apply("stage", (self.node,), ("contiguous",)))

    def clone(self) -> Tensor:
        """Another tensor of the same value, through which gradients flow. Elements never change,
        so that it costs nothing."""
        node = self.node
        # Of a leaf its identity in the graph, so that the clone is none.
        return Tensor.of_node(
            apply("reshape", (node,), (node.shape,)) if node.op == "leaf" else node
        )

    # -- change -----------------------------------------------------------------------------------

    def become(self, node: Node) -> None:
        """Take the value of a node of this shape and type; a leaf becomes another leaf."""
        trace = tracing.current()
        if trace is not None and self._birth is not trace:
            trace.set_node(self, node)
        elif self._node.op == "leaf":
            self._become_leaf(apply("stage", (node,), ("detach",)) if node.tracked else node)
        else:
            self._node = node
        self.weak = False

    def donate(self) -> None:
        """Give its value away: reading it raises UopcError [donated-tensor] from now on."""
        self._node, self._grad = donated(self._node), None


def _as_array(data: Any) -> Any:
    """What is no number, list or array, as the array that it makes of itself."""
    if isinstance(data, list | tuple):
        return _plain_list(cast(Sequence[Any], data))
    if isinstance(data, bytes | bytearray):
        return np.frombuffer(cast(Any, data), np.uint8)
    if isinstance(data, memoryview | array.array):
        return np.asarray(cast(Any, data))
    if isinstance(data, np.ma.MaskedArray) or type(data) is np.ndarray:
        return cast(Any, data)
    if hasattr(data, "__array__"):
        return np.asarray(data)
    return np.from_dlpack(data) if hasattr(data, "__dlpack__") else data


def _plain_list(data: Sequence[Any]) -> Any:
    return [x.tolist() if isinstance(x, Tensor) else x for x in data]


core.register(Tensor)


def _rebuilt(data: Array, type_: str, trained: bool, gradient: Tensor | None) -> Tensor:
    """A tensor from what was kept of it."""
    value = Tensor(data, dtype=type_, requires_grad=trained)
    value.grad = gradient
    return value
