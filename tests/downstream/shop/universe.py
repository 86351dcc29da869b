"""What this package adds to every xDSL tool in the environment."""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe


def _dialect() -> Dialect:
    from shop.dialect import Shop

    return Shop


def _to_utensor() -> type[ModulePass]:
    from shop.to_utensor import ShopToUtensorPass

    return ShopToUtensorPass


SHOP_UNIVERSE = Universe(
    all_dialects={"shop": _dialect},
    all_passes={"shop-to-utensor": _to_utensor},
)
