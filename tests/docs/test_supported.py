"""docs/supported.md is what its script writes from the code of today."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

onnx = pytest.importorskip("onnx")
DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("generate_supported", DOCS / "generate_supported.py")
assert spec is not None and spec.loader is not None
generate_supported: Any = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = generate_supported
spec.loader.exec_module(generate_supported)


def test_the_page_is_current():
    text = (DOCS / "supported.md").read_text("utf-8")
    if f"(onnx {onnx.__version__})" not in text:
        pytest.skip(f"the page was written with another version of onnx than {onnx.__version__}")
    assert generate_supported.page() == text, "make docs writes docs/supported.md anew"


def test_element_types_are_told_by_kinds():
    assert generate_supported.type_words(generate_supported.all_types()) == "all"
    assert generate_supported.type_words(["f32", "i1"]) == "`f32`, `i1`"
    assert generate_supported.type_words(["i8", "i16", "i32", "i64", "ui8"]) == "signed, `ui8`"


def test_probes_tell_what_is_refused_from_what_is_not():
    rows = dict(generate_supported._utensor_rows())
    assert rows["`exp`"] == "floats"
    assert rows["`add`"] == "all"
    assert rows["`reduce or`"] == "signed, unsigned, `i1`"
