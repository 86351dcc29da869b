"""Whether a tensor's memory is nobody else's: then a plan may write a result over it.

Python counts who holds an object. A tensor that shares its value with nothing (no other tensor, no
lazy graph that is still to read it, no view in numpy) has counts that are known beforehand: those
of a tensor just made. Anything that holds it besides makes one of them larger, and so does a kind
of tensor that is not known here; the plan then gets a copy. It does as well where there are other
threads, which could begin to read while the plan writes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from sys import getrefcount

import numpy as np

from uopc.frontend.graph import Array
from uopc.frontend.tensor import Tensor
from uopc.runtime.buffers import aligned_copy
from uopc.runtime.recycling import Block

Counts = tuple[bool, int, int, int, int]


def _counts(tensor: Tensor, arrays: Sequence[Array], at: int) -> Counts | None:
    """Who holds the node of a tensor, that of its data, the data's array and what that lies in.

    None for all but the two forms that tensors with data of their own have: a buffer, and a leaf
    over one; and for memory that came from elsewhere (a file, another library, bytes).
    """
    node = tensor._node  # pyright: ignore[reportPrivateUsage] (as the jit, its friend)
    array = arrays[at]
    if node.op == "buffer":
        data = node
    elif node.op == "leaf" and node.realized is not None and node.sources == (node.realized,):
        data = node.realized
    else:
        return None
    base = array.base
    if data.array is not array or not array.flags.writeable or type(base) is not np.ndarray:
        return None
    owner: object = base.base
    if not base.flags.owndata and not isinstance(owner, Block):
        return None
    holders = getrefcount(node), getrefcount(data), getrefcount(array), getrefcount(base)
    return (data is node, *holders)


@cache
def _alone() -> frozenset[Counts | None]:
    """The counts of tensors that nothing else holds, with and without gradients: their data lies in
    a block of memory, as that of all that tensors make and plans write."""
    found: set[Counts | None] = set()
    for requires_grad in (False, True):
        tensor = Tensor(np.zeros(2, np.float32), requires_grad=requires_grad)
        found.add(_counts_of_new(tensor))
    return frozenset(found)


def _counts_of_new(tensor: Tensor) -> Counts | None:
    node = tensor._node  # pyright: ignore[reportPrivateUsage] (as the jit, its friend)
    data = node if node.array is not None else node.realized
    assert data is not None and data.array is not None
    arrays = [data.array]
    del node, data
    return _counts(tensor, arrays, 0)


def other_threads() -> bool:
    """Whether Python has threads beside this one; but for that of tqdm, which reads no tensor."""
    if threading.active_count() == 1:
        return False
    this = threading.current_thread()
    return any(t is not this and type(t).__name__ != "TMonitor" for t in threading.enumerate())


def own_data(tensor: Tensor, arrays: list[Array], at: int) -> bool:
    """Whether a tensor's array in a list is nobody else's; if it may be, a copy takes its place."""
    if _counts(tensor, arrays, at) in _alone() and not other_threads():
        return True
    arrays[at] = aligned_copy(arrays[at])
    return False
