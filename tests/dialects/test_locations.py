"""Ops know where they were read from."""

import time

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.parser import Parser

from uopc.dialects.errors import SourceLocation, UopcError
from uopc.dialects.locations import location_of, nearest_location, parse_file, parse_text
from uopc.dialects.op_text import op_name
from uopc.dialects.registry import make_context

TEXT = """\
func.func @f(%a : i32) -> i32 {
  %b, %c = "test.pair"(%a) : (i32) -> (i32, i32)
  %d = arith.addi
    %b, %c : i32
  "test.region"() ({
    %e = arith.constant 1 : i32
  }) : () -> ()
  func.return %d : i32
}
"""


def places(module):
    return {op_name(op): str(location_of(op)) for op in module.walk()}


def test_an_op_stands_where_its_name_stands():
    module = parse_text(TEXT, "f.mlir", context=make_context(allow_unregistered=True))
    assert places(module) == {
        "builtin.module": "f.mlir:1:1",
        "func.func": "f.mlir:1:1",
        "test.pair": "f.mlir:2:12",
        "arith.addi": "f.mlir:3:8",
        "test.region": "f.mlir:5:3",
        "arith.constant": "f.mlir:6:10",
        "func.return": "f.mlir:8:3",
    }


def test_the_first_line_may_be_later_in_a_file():
    assert location_of(parse_text("module {}", "f", first_line=7)) == SourceLocation("f", 7, 1)
    with pytest.raises(UopcError) as caught:
        parse_text("\nfunc.func @", "f", first_line=7)
    assert caught.value.location == SourceLocation("f", 8, 11)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('loc("a.py":3:4)', "a.py:3:4"),
        ('loc("name"("a.py":3:4))', "a.py:3:4"),
        ('loc(callsite("a.py":3:4 at "b.py":1:1))', "a.py:3:4"),
        ('loc(callsite(unknown at "b.py":1:1))', "b.py:1:1"),
        ('loc(fused[unknown, "a.py":3:4, "b.py":1:1])', "a.py:3:4"),
        ('loc("name")', "None"),
    ],
)
def test_locations_in_the_text_win(text, place):
    module = parse_text(f"module {{}} {text}")
    assert str(location_of(module)) == place


def test_a_clone_keeps_its_place_and_an_op_without_one_has_neighbours():
    module = parse_text("%a = arith.constant 1 : i32", "f")
    constant = module.body.block.first_op
    assert location_of(constant.clone()) == location_of(constant)
    add = arith.AddiOp(constant.results[0], constant.results[0], result_type=i32)
    assert location_of(add) is None
    assert nearest_location(add) == location_of(constant)
    other = arith.ConstantOp.from_int_and_width(1, 32)
    assert nearest_location(other) is None
    module.body.block.add_op(other)
    assert nearest_location(other) == SourceLocation("f", 1, 1)


def test_values_without_definition_are_placed_at_their_first_use():
    with pytest.raises(UopcError) as caught:
        parse_text("%a = arith.constant 1 : i32\n%b = arith.addi %a, %z : i32\n", "f")
    assert str(caught.value.location) == "f:2:21"
    assert "%z" in caught.value.message


def test_near_names_of_ops_are_told():
    with pytest.raises(UopcError, match=r"did you mean arith\.addi"):
        parse_text("%a = arith.constant 1 : i32\n%b = arith.addii %a, %a : i32\n", "f")


@pytest.mark.parametrize("size", [40, 4000, 400_000])
def test_an_open_string_takes_no_time(size):
    start = time.process_time()
    with pytest.raises(UopcError, match="closing string"):
        parse_text('"' + "ab(c) " * (size // 6))
    assert time.process_time() - start < 2


def test_strings_are_read_as_xdsl_reads_them():
    text = r'module attributes {a = "x \" \\ \n \41 é", b = "", c = "\41 \"", d = "é"} {}'
    module = parse_text(text)
    assert module.attributes == Parser(make_context(), text).parse_module().attributes
    assert module.attributes["c"].data == 'A "'
    for wrong in (r'"\x"', '"a\nb"', '"', r'"\"'):
        with pytest.raises(UopcError, match="closing string"):
            parse_text(f"module attributes {{a = {wrong}")


def test_files(tmp_path):
    path = tmp_path / "a b.mlir"
    path.write_text("module {}")
    assert location_of(parse_file(str(path))).file == str(path)
    with pytest.raises(UopcError, match="cannot read"):
        parse_file(str(tmp_path))


def test_constants_that_memory_cannot_hold_are_refused():
    with pytest.raises(UopcError, match="too large"):
        parse_text("module attributes {a = dense<0> : tensor<100000x100000xi8>} {}")
    module = parse_text("module attributes {a = dense<> : tensor<0x100000000000xi8>} {}")
    assert len(module.attributes["a"]) == 0
