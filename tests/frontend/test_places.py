"""Kernels of Tensor programs say at which Python lines their ops were made, where C is shown."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from xdsl.dialects.builtin import UnknownLoc

import uopc
from uopc import Tensor
from uopc.frontend.build import build_module
from uopc.frontend.graph import evaluation_order


def rows(count: int) -> Tensor:
    return Tensor(np.arange(count * 3, dtype=np.float32).reshape(count, 3))


def test_the_comment_in_c_has_the_lines(cache_folder, capsys: pytest.CaptureFixture[str]):
    with uopc.debug(4):
        x = rows(7)
        line = sys._getframe().f_lineno
        y = (x * x).exp()
        z = y - 0.5
        z.numpy()
    assert f"/* mul, exp, sub; test_places.py:{line + 1}-{line + 2} */" in capsys.readouterr().err


def test_ops_made_inside_of_the_library_are_where_it_was_called(cache_folder):
    with uopc.debug(4):
        x = rows(5)
        line = sys._getframe().f_lineno + 1
        y = x.softmax(axis=1)
        order = evaluation_order([y._node])
    made = {node.place for node in order if node.op not in ("buffer", "leaf")}
    assert made == {(__file__, line)}


def test_no_lines_where_no_c_is_shown(cache_folder):
    with uopc.debug(1):
        y = (rows(6) * 3.0).exp()
    order = evaluation_order([y._node])
    assert not [node for node in order if node.place]
    made = [op.location for op in build_module(order, [y._node]).walk()]
    assert all(isinstance(location, UnknownLoc) for location in made)
