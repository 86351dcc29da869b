"""All rules, by an op's name and the version of it from which on they hold."""

from __future__ import annotations

from uopc.frontend.onnx_import.call import Rules
from uopc.frontend.onnx_import.control import CONTROL_RULES
from uopc.frontend.onnx_import.elementwise import ELEMENTWISE_RULES
from uopc.frontend.onnx_import.indexing import INDEX_RULES
from uopc.frontend.onnx_import.movement import MOVEMENT_RULES
from uopc.frontend.onnx_import.products import PRODUCT_RULES
from uopc.frontend.onnx_import.reductions import REDUCTION_RULES
from uopc.frontend.onnx_import.resize import RESIZE_RULES
from uopc.frontend.onnx_import.windows import WINDOW_RULES

RULES: Rules = {
    **CONTROL_RULES,
    **ELEMENTWISE_RULES,
    **INDEX_RULES,
    **MOVEMENT_RULES,
    **PRODUCT_RULES,
    **REDUCTION_RULES,
    **RESIZE_RULES,
    **WINDOW_RULES,
}
