"""What must hold of a module: dominance, symbols, levels; and ops on one line."""

import random
import time

import pytest
from xdsl.dialects import arith, test
from xdsl.dialects.builtin import ModuleOp, i1, i32
from xdsl.ir import Block, Region

from uopc.dialects.dominance import check_dominance
from uopc.dialects.errors import UopcError
from uopc.dialects.legality import LEVELS, why_illegal
from uopc.dialects.locations import parse_text
from uopc.dialects.op_text import OP_TEXT_WIDTH, op_text
from uopc.dialects.registry import make_context
from uopc.dialects.verification import check_level, verify_module, walk_operations


def parse(text):
    return parse_text(text, "f", context=make_context(allow_unregistered=True))


def fails(text):
    with pytest.raises(UopcError) as caught:
        verify_module(parse(text))
    return f"{caught.value.location}: {caught.value.message}"


GOOD_GRAPHS = [
    # A module is a graph region: order does not matter.
    '"t.use"(%a) : (i32) -> ()\n%a = arith.constant 1 : i32',
    # Values of the outside are visible inside, and in blocks that come after.
    """func.func @f(%p : i1, %x : i32) {
         %a = arith.constant 1 : i32
         scf.if %p { scf.if %p { "t.use"(%a, %x) : (i32, i32) -> () } }
         cf.cond_br %p, ^one, ^two
       ^one: cf.br ^two
       ^two: "t.use"(%a) : (i32) -> ()
         func.return }""",
    # A loop: the body is dominated by its head.
    """func.func @f(%p : i1) {
         cf.br ^head
       ^head: %a = arith.constant 1 : i32
         cf.cond_br %p, ^body, ^end
       ^body: "t.use"(%a) : (i32) -> ()
         cf.br ^head
       ^end: "t.use"(%a) : (i32) -> ()
         func.return }""",
    # A block that cannot be reached may use anything.
    """func.func @f() {
         func.return
       ^dead: "t.use"(%a) : (i32) -> ()
         %a = arith.constant 1 : i32
         cf.br ^dead }""",
]


@pytest.mark.parametrize("text", GOOD_GRAPHS)
def test_what_dominates(text):
    check_dominance(parse(text))


def test_what_does_not_dominate():
    own = "func.func @f() {\n %a = arith.addi %a, %a : i32\n func.return\n}"
    assert fails(own).startswith("f:2:7: 'arith.addi' op operand 0 (%a) is used where")
    inside = (
        "func.func @f(%p : i1) {\n"
        ' %a = "t.op"() ({\n  "t.use"(%a) : (i32) -> ()\n }) : () -> i32\n'
        " func.return\n}"
    )
    assert fails(inside).startswith("f:3:3: 't.use' op operand 0 (%a)")
    back = (
        "func.func @f(%p : i1) {\n cf.cond_br %p, ^a, ^b\n"
        "^a:\n %x = arith.constant 1 : i32\n cf.br ^c\n"
        "^b:\n cf.br ^c\n"
        '^c:\n "t.use"(%x) : (i32) -> ()\n func.return\n}'
    )
    assert fails(back).startswith("f:9:2: 't.use' op operand 0 (%x)")


def test_values_of_a_sibling_region_are_not_visible():
    inner = arith.ConstantOp.from_int_and_width(1, 32)
    user = test.TestOp(operands=[inner.result])
    module = ModuleOp(
        [
            test.TestOp(regions=[Region(Block([inner]))]),
            test.TestOp(regions=[Region(Block([user]))]),
        ]
    )
    with pytest.raises(UopcError, match="is used where it is not defined"):
        check_dominance(module)


def test_dominance_agrees_with_its_definition_on_random_graphs():
    """a dominates b if b cannot be reached from the entry when a is taken away."""
    chance = random.Random(1)
    for _ in range(25):
        count = chance.randint(2, 8)
        edges = [chance.sample(range(count), chance.randint(0, 2)) for _ in range(count)]
        edges[0] = [target for target in edges[0] if target] or [1]
        edges = [[t for t in targets if t] for targets in edges]
        for definer in range(count):
            for user in range(count):
                good = user not in reachable(edges, None) or (
                    definer == user or user not in reachable(edges, definer)
                )
                assert accepted(edges, definer, user) == good, (edges, definer, user)


def reachable(edges, without):
    seen, pending = set(), [0]
    while pending:
        block = pending.pop()
        if block not in seen and block != without:
            seen.add(block)
            pending.extend(edges[block])
    return seen


def accepted(edges, definer, user):
    blocks = [Block() for _ in edges]
    constant = arith.ConstantOp.from_int_and_width(1, 32)
    blocks[definer].add_op(constant)
    blocks[user].add_op(test.TestOp(operands=[constant.result]))
    for block, targets in zip(blocks, edges, strict=True):
        block.add_op(test.TestTermOp(successors=[blocks[t] for t in targets]))
    try:
        check_dominance(test.TestOp(regions=[Region(blocks)]))
    except UopcError:
        return False
    return True


def test_symbols():
    assert "defines symbol @f a second time; the first is 'func.func' at f:1:1" in fails(
        "func.func private @f()\nfunc.func private @f()"
    )
    # Each table has its own names, and a call looks outwards.
    verify_module(
        parse(
            "func.func private @f()\n"
            "module @inner { func.func @g() { func.return } }\n"
            "module @other { func.func private @g() }"
        )
    )
    missing = (
        "func.func private @helper()\n"
        "func.func @f() {\n func.call @helpr() : () -> ()\n func.return\n}"
    )
    assert fails(missing).startswith("f:3:2: 'func.call' op refers to symbol @helpr")
    assert fails('"memref.get_global"() {name = @gone} : () -> memref<4xf32>').startswith("f:1:1: ")


def test_other_failures_name_the_op_and_the_place():
    assert fails("func.func @f() {\n %a = arith.constant 1 : i32\n}").startswith("f:2:7: ")
    assert fails('func.func @f() {\n "cf.br"() [^b] : () -> ()\n^b:\n}').startswith("f:")
    wrong = fails('%a = "arith.addi"() : () -> i32')
    assert wrong.startswith("f:1:6: 'arith.addi' op ")


def test_levels():
    text = '"utensor.x"() : () -> ()\n"ukernel.kernel"() ({ "utensor.y"() : () -> () }) : () -> ()'
    module = parse_unchecked(text)
    for level, words in {
        "utensor": "'ukernel.kernel' op is not legal at level utensor",
        "ukernel": "'utensor.x' op is legal at level ukernel inside ukernel.kernel only",
        "uloop": "'utensor.x' op is not legal at level uloop",
        "linear": "'utensor.x' op is not legal at level linear, which has only arith, builtin, cf",
    }.items():
        with pytest.raises(UopcError) as caught:
            check_level(module, level)
        assert caught.value.kind == "illegal-op"
        assert caught.value.message.startswith(words)
    foreign = parse_unchecked('"mine.op"() : () -> ()')
    check_level(foreign, "utensor")
    with pytest.raises(UopcError, match=r"'mine\.op'"):
        check_level(foreign, "ukernel")
    with pytest.raises(KeyError, match="no level"):
        check_level(foreign, "lniear")
    assert set(LEVELS) == {"utensor", "ukernel", "uloop", "linear"}
    assert why_illegal(parse("%a = arith.constant 1 : i32").body.block.first_op, "linear") == ""


def parse_unchecked(text):
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin

    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    return parse_text(text, "f", context=context)


def test_op_text_is_one_short_line():
    module = parse(
        "func.func @f(%a : i32) {\n" + " %b = arith.addi %a, %a : i32\n" * 0 + " func.return\n}"
    )
    assert "\n" not in op_text(module)
    many = ModuleOp([arith.ConstantOp.from_int_and_width(i, i32) for i in range(3000)])
    start = time.process_time()
    text = op_text(many)
    assert time.process_time() - start < 0.5
    assert (
        len(text) == OP_TEXT_WIDTH and text.endswith(" …") and text.startswith('"builtin.module"')
    )
    constant = arith.ConstantOp.from_int_and_width(1, i1)
    add = test.TestOp(operands=[constant.result])
    constant.erase(safe_erase=False)
    assert "test.op" in op_text(add)


def test_walk_and_verify_need_no_recursion():
    inner = test.TestOp()
    for _ in range(3000):
        inner = test.TestOp(regions=[Region(Block([inner]))])
    module = ModuleOp([inner])
    assert sum(1 for _ in walk_operations(module)) == 3002
    check_dominance(module)


def test_walk_goes_in_the_order_of_the_text():
    module = parse(GOOD_GRAPHS[1])
    assert list(walk_operations(module)) == list(module.walk())
