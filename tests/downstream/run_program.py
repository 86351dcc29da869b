"""Compile a program of the shop dialect by uopc from Python, run it, compare with numpy."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from shop.dialect import Shop
from shop.to_utensor import ShopToUtensorPass
from xdsl.parser import Parser

import uopc
from uopc.dialects.registry import make_context

context = make_context()
context.register_dialect("shop", lambda: Shop)
module = Parser(context, Path(sys.argv[1]).read_text(encoding="utf-8")).parse_module()
module.verify()
ShopToUtensorPass().apply(context, module)

mean_exp = uopc.compile(module)
x = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)
y = mean_exp(x)
np.testing.assert_allclose(y, np.exp(x).mean(axis=1), rtol=1e-6)
print([call.name for call in mean_exp.plan.kernels], y.shape, y.dtype)
