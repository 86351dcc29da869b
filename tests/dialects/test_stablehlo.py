"""The dialects of StableHLO are for uopc's own tools: other projects bring some of these names."""

from uopc.dialects.registry import make_context
from uopc.universe import UOPC_UNIVERSE


def test_only_our_tools_have_them():
    shown = UOPC_UNIVERSE.all_dialects
    assert "utensor" in shown
    assert not {"stablehlo", "chlo", "linalg", "tensor"} & set(shown)
    context = make_context()
    assert context.get_optional_op("stablehlo.add") is not None
