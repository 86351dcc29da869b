"""Shapes: what moves elements, joins and cuts, and what tells or makes shapes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from uopc.frontend.core import all_axes, one_axis
from uopc.frontend.creation import index_along
from uopc.frontend.elementwise import where
from uopc.frontend.movement import cat
from uopc.frontend.onnx_import.arrays import Array, element_of_code
from uopc.frontend.onnx_import.call import Call, Result, Rules
from uopc.frontend.onnx_import.elementwise import number
from uopc.frontend.promotion import is_float

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def _shape(c: Call) -> Result:
    x = c[0]
    start, end, _ = slice(c.integer("start", 0), c.integer("end", x.ndim)).indices(x.ndim)
    return c.importer.constant(np.array(x.shape[start:end], np.int64))


def _size(c: Call) -> Result:
    return c.importer.constant(np.array(c[0].size, np.int64))


def _reshape(c: Call) -> Result:
    x = c[0]
    wanted = c.integers("shape") if c.version < 5 else c.known_ints(1)
    if wanted is None:
        raise c.invalid("lacks the shape")
    keeps = not c.flag("allowzero")
    if keeps and any(not n and k >= x.ndim for k, n in enumerate(wanted)):
        raise c.invalid(f"copies a size by 0 that rank {x.ndim} has not: {wanted}")
    sizes = [x.shape[k] if keeps and not n else n for k, n in enumerate(wanted)]
    if sizes.count(-1) == 1 and 0 in sizes and x.size == 0:
        sizes[sizes.index(-1)] = 0
    return x.reshape(tuple(sizes))


def _flatten(c: Call) -> Result:
    x = c[0]
    axis = c.integer("axis", 1)
    if not -x.ndim <= axis <= x.ndim:
        raise c.invalid(f"has axis {axis} for rank {x.ndim}")
    axis += x.ndim if axis < 0 else 0
    return x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _transpose(c: Call) -> Result:
    order = c.integers("perm")
    return c[0].permute(tuple(order if order is not None else reversed(range(c[0].ndim))))


def _squeeze(c: Call) -> Result:
    x = c[0]
    given = c.integers("axes") if c.version < 13 else c.known_ints(1)
    axes = [k for k, n in enumerate(x.shape) if n == 1] if given is None else given
    gone = all_axes(axes, x.ndim)
    if any(x.shape[k] != 1 for k in gone):
        raise c.invalid(f"squeezes axes {list(gone)} of shape {list(x.shape)}, not all of size 1")
    return x.reshape(tuple(n for k, n in enumerate(x.shape) if k not in gone))


def _unsqueeze(c: Call) -> Result:
    x = c[0]
    given = c.integers("axes") if c.version < 13 else c.known_ints(1)
    if given is None:
        raise c.invalid("lacks the axes")
    axes = all_axes(given, x.ndim + len(given))
    sizes = iter(x.shape)
    return x.reshape(tuple(1 if k in axes else next(sizes) for k in range(x.ndim + len(axes))))


def _expand(c: Call) -> Result:
    from uopc.frontend.core import broadcast_shapes

    shape = tuple(c.known_ints(1) or ())
    return c[0].broadcast_to(broadcast_shapes(c[0].shape, shape))


def _tile(c: Call) -> Result:
    counts = c.known_ints(1) or []
    if len(counts) != c[0].ndim or any(n < 0 for n in counts):
        raise c.invalid(f"repeats a tensor of rank {c[0].ndim} {counts} times")
    return c[0].tile(tuple(counts)) if counts else c[0]


def _concat(c: Call) -> Result:
    axis = c.integer("axis", 1 if c.version < 4 else None)
    return cat(c.all(), axis)


def _split(c: Call) -> Result:
    x = c[0]
    axis, outputs = c.axis(0, x.ndim), len(c.node.output)
    sizes = c.integers("split") if c.version < 13 else c.known_ints(1)
    total = x.shape[axis]
    if sizes is None:
        parts = c.integer("num_outputs", outputs)
        each = -(-total // parts)
        sizes = [max(0, min(each, total - k * each)) for k in range(parts)]
    if sum(sizes) != total or len(sizes) != outputs or min(sizes) < 0:
        raise c.invalid(f"splits axis {axis} of size {total} into {sizes}")
    begins = np.cumsum([0, *sizes]).tolist()
    return [
        x.shrink([(b, b + n) if k == axis else None for k in range(x.ndim)])
        for b, n in zip(begins, sizes, strict=False)
    ]


def _slice(c: Call) -> Result:
    x = c[0]
    if c.version < 10:
        starts, ends = c.integers("starts"), c.integers("ends")
        axes, steps = c.integers("axes"), None
    else:
        starts, ends = c.known_ints(1), c.known_ints(2)
        axes, steps = c.known_ints(3), c.known_ints(4)
    if starts is None or ends is None or len(starts) != len(ends):
        raise c.invalid("needs as many ends as starts")
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    if len(axes) != len(starts) or len(steps) != len(starts) or 0 in steps:
        raise c.invalid(f"has starts {starts}, axes {axes}, steps {steps}")
    key = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        place = one_axis(axis, x.ndim)
        key[place] = _clamped(start, end, step, x.shape[place])
    return x[tuple(key)]


def _clamped(start: int, end: int, step: int, size: int) -> slice:
    """Bounds clamped as ONNX does it, which is what Python does but for an end of -1 or less."""
    start, end = (v + size if v < 0 else v for v in (start, end))
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end < 0 else end, step)


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def _pad(c: Call) -> Result:
    x = c[0]
    if c.version < 11:
        pads = c.integers("pads" if c.version > 1 else "paddings")
        value: float | int = c.real("value", 0.0)
        axes = None
    else:
        pads, axes = c.known_ints(1), c.known_ints(3)
        value = c.known(2).reshape(-1)[0].item() if c.get(2) is not None else 0
    places = range(x.ndim) if axes is None else [one_axis(a, x.ndim) for a in axes]
    if pads is None or len(pads) != 2 * len(places):
        raise c.invalid(f"has pads {pads} for {len(places)} axes")
    pairs = [(0, 0)] * x.ndim
    for k, place in enumerate(places):
        pairs[place] = (pads[k], pads[k + len(places)])
    mode = c.word("mode", "constant")
    if mode not in _MODES:
        raise c.invalid(f"has mode '{mode}'")
    if mode in ("reflect", "wrap"):
        return _repeated_pad(x, pairs, mode)
    value = bool(value) if x.element == "i1" else value if is_float(x.element) else int(value)
    return x.pad(pairs, _MODES[mode], value)


def _repeated_pad(x: Tensor, pairs: list[tuple[int, int]], mode: str) -> Tensor:
    """By positions, so that more may be added than there is."""
    for axis, (low, high) in enumerate(pairs):
        if low or high:
            pad: Any = np.pad  # typed by mode
            at: Array = pad(np.arange(x.shape[axis]), (max(low, 0), max(high, 0)), mode)
            at = at[max(-low, 0) : len(at) - max(-high, 0)]
            x = x.take(at, axis)
    return x


def _depth_to_space(c: Call) -> Result:
    x, block = c[0], c.integer("blocksize")
    if x.ndim != 4 or block < 1 or x.shape[1] % block**2:
        raise c.invalid(f"has blocks of {block} for shape {list(x.shape)}")
    n, depth, h, w = x.shape
    rest = depth // block**2
    if c.word("mode", "DCR") == "DCR":
        y = x.reshape((n, block, block, rest, h, w)).permute((0, 3, 4, 1, 5, 2))
    else:
        y = x.reshape((n, rest, block, block, h, w)).permute((0, 1, 4, 2, 5, 3))
    return y.reshape((n, rest, h * block, w * block))


def _space_to_depth(c: Call) -> Result:
    x, block = c[0], c.integer("blocksize")
    if x.ndim != 4 or block < 1 or x.shape[2] % block or x.shape[3] % block:
        raise c.invalid(f"has blocks of {block} for shape {list(x.shape)}")
    n, depth, h, w = x.shape
    y = x.reshape((n, depth, h // block, block, w // block, block))
    crd = c.word("mode", "DCR") == "CRD"
    y = y.permute((0, 1, 3, 5, 2, 4) if crd else (0, 3, 5, 1, 2, 4))
    return y.reshape((n, depth * block**2, h // block, w // block))


def _trilu(c: Call) -> Result:
    x = c[0]
    diagonal = int(c.known(1).reshape(-1)[0]) if c.get(1) is not None else 0
    rows, columns = x.shape[-2:]
    row, column = index_along(rows, 0, 2, "i64"), index_along(columns, 1, 2, "i64")
    edge = row + number(max(-rows, min(columns, diagonal)), row)
    kept = edge <= column if c.flag("upper", True) else column <= edge
    return where(kept, x, number(0, x))


# Tensors from nothing.


def _constant(c: Call) -> Result:
    array = c.array("value")
    if array is not None:
        return c.importer.constant(array)
    for name, read, dtype in (
        ("value_float", c.real, np.float32), ("value_int", c.integer, np.int64),
        ("value_floats", c.reals, np.float32), ("value_ints", c.integers, np.int64),
    ):  # fmt: skip
        if c.has(name):
            return c.importer.constant(np.array(read(name), dtype))
    raise c.unsupported("its value is no tensor of numbers")


def _constant_of_shape(c: Call) -> Result:
    value: Array = np.zeros(1, np.float32)
    given = c.array("value")
    value = value if given is None else given
    if value.size != 1:
        raise c.invalid(f"has a value of {value.size} elements, expected 1")
    shape = tuple(c.known_ints(0) or ())
    if any(n < 0 for n in shape):
        raise c.invalid(f"has sizes {list(shape)}")
    return c.importer.constant(value.reshape(())).expand(shape)


def _range(c: Call) -> Result:
    start, limit, step = (c.known(k).reshape(-1)[0] for k in range(3))
    if not step:
        raise c.invalid("has a step of 0")
    count = max(0, math.ceil((limit.astype(np.float64) - start) / step))
    element = c[0].element
    wide = "f32" if element in ("f16", "bf16") else element
    at = index_along(count, 0, 1, "i64").cast(wide)
    return (number(start.item(), at) + at * number(step.item(), at)).cast(element)


def _eye_like(c: Call) -> Result:
    x, offset = c[0], c.integer("k", 0)
    if x.ndim != 2:
        raise c.invalid(f"has rank {x.ndim}, expected 2")
    element = element_of_code(c.integer("dtype"), c.words) if c.has("dtype") else x.element
    row, column = (index_along(n, k, 2, "i64") for k, n in enumerate(x.shape))
    return (row + number(offset, row) == column).cast(element)


def _one_hot(c: Call) -> Result:
    indices, values = c[0], c[2]
    depth = int(c.known(1).reshape(-1)[0])
    axis = one_axis(c.integer("axis", -1), indices.ndim + 1)
    at = indices.cast("i64").unsqueeze(axis)
    zero = number(0, at)
    at = where(at < zero, at + number(depth, at), at)
    hot = index_along(depth, axis, indices.ndim + 1, "i64") == at
    off, on = (values.shrink([(k, k + 1)]).reshape(()) for k in range(2))
    return where(hot, on, off)


def _reverse_sequence(c: Call) -> Result:
    """The first lengths[b] elements along the time axis in opposite order."""
    x, lengths = c[0], c[1]
    batch, time = c.integer("batch_axis", 1), c.integer("time_axis", 0)
    if {batch, time} != {0, 1}:
        raise c.invalid(f"has batch axis {batch} and time axis {time}, expected 0 and 1")
    at = index_along(x.shape[time], time, x.ndim, "i64")
    count = lengths.reshape(tuple(-1 if k == batch else 1 for k in range(x.ndim)))
    turned = where(at < count, count - number(1, count) - at, at)
    return x.gather(time, turned.expand(x.shape))


MOVEMENT_RULES: Rules = {
    "Concat": {1: _concat},
    "Constant": {1: _constant},
    "ConstantOfShape": {9: _constant_of_shape},
    "DepthToSpace": {1: _depth_to_space},
    "Expand": {8: _expand},
    "EyeLike": {9: _eye_like},
    "Flatten": {1: _flatten},
    "OneHot": {9: _one_hot},
    "Pad": {1: _pad},
    "Range": {11: _range},
    "Reshape": {1: _reshape},
    "ReverseSequence": {10: _reverse_sequence},
    "Shape": {1: _shape},
    "Size": {1: _size},
    "Slice": {1: _slice},
    "SpaceToDepth": {1: _space_to_depth},
    "Split": {2: _split},
    "Squeeze": {1: _squeeze},
    "Tile": {6: _tile},
    "Transpose": {1: _transpose},
    "Trilu": {14: _trilu},
    "Unsqueeze": {1: _unsqueeze},
}
