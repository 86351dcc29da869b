"""Parallel parts in C: any thread pool may be plugged in, and without one they run in order.

An scf.parallel whose body is one call becomes a struct of the call's arguments, a function that
runs one part of it, and one call of `run_parts`. The file itself knows no threads:

    struct r_64_64_part_context { const float *a; float *out; };

    static void r_64_64_part_run(void *context, int64_t part)
    {
        const struct r_64_64_part_context *c = (const struct r_64_64_part_context *)context;
        r_64_64_part(part, c->a, c->out);
    }

    struct r_64_64_part_context context = {a, out};
    run_parts(25, r_64_64_part_run, &context);
"""

from __future__ import annotations

from xdsl.dialects import func, scf

from uopc.lowering.c_module import Signature
from uopc.lowering.c_names import Names
from uopc.lowering.c_prelude import Prelude
from uopc.lowering.c_style import FunctionPrinter
from uopc.lowering.c_types import is_memref

RUN_PARTS = "run_parts"


_TYPES = """\
typedef void (*part_body)(void *context, int64_t part);
typedef void (*part_runner)(int64_t count, part_body body, void *context);
"""


def runner_text(setter: str, linkage: str = "static ") -> str:
    """The definitions that parallel parts need, once a program."""
    return f"""\
{_TYPES}
static void run_in_order(int64_t count, part_body body, void *context)
{{
    for (int64_t part = 0; part < count; part++)
        body(context, part);
}}

{linkage}part_runner {RUN_PARTS} = run_in_order;

/* From now on `runner` runs the parts of a kernel: it calls body(context, part) once for each
   part below count, in any order and on any threads, and returns when all are done. Null for one
   after the other, which is how it starts. Results do not depend on it. */
void {setter}(part_runner runner)
{{
    {RUN_PARTS} = runner ? runner : run_in_order;
}}"""


def runner_declaration(linkage: str) -> str:
    """What other files of the program need of `runner_text`."""
    return f"{_TYPES}\n{linkage}part_runner {RUN_PARTS};"


def need_runner(prelude: Prelude, setter: str) -> None:
    """Have the definitions emitted, with `setter` as the function that plugs a pool in."""
    prelude.need(RUN_PARTS, lambda _: runner_text(setter))


def parts_of(p: FunctionPrinter, op: scf.ParallelOp) -> tuple[func.CallOp, Signature] | None:
    """The call that an scf.parallel runs for each part, if it is nothing more."""
    body = op.body.block
    first = body.first_op
    if not isinstance(first, func.CallOp) or first.next_op is not body.last_op:
        return None
    if len(body.args) != 1 or op.initVals or first.results or not first.arguments:
        return None
    outside = all(a is not body.args[0] for a in first.arguments[1:])
    signature = p.symbols.functions.get(first.callee.string_value())
    if first.arguments[0] is not body.args[0] or not outside or signature is None:
        return None
    (lower,), (step,) = op.lowerBound, op.step
    from_zero = p.expr(lower).text == "0" and p.expr(step).text == "1"
    if not from_zero or p.symbols.parts_setter is None:
        return None
    return first, signature


def run_parts(p: FunctionPrinter, op: scf.ParallelOp) -> bool:
    """Print an scf.parallel that is one call a part; whether it was one."""
    found = parts_of(p, op)
    if found is None:
        return False
    call, signature = found
    assert p.symbols.parts_setter is not None
    need_runner(p.prelude, p.symbols.parts_setter)
    context = p.symbols.fresh(f"{signature.name}_context")
    run = p.symbols.fresh(f"{signature.name}_run")
    names = Names(p.symbols.taken)  # what they name must not hide the function called
    part, c, raw = names.take("part"), names.take("c"), names.take("context")
    parameters = signature.parameters[1:]
    fields = " ".join(f"{each.declaration(restrict=False)};" for each in parameters)
    arguments = ", ".join([part, *(f"{c}->{each.name}" for each in parameters)])
    p.before.append(
        f"""struct {context} {{ {fields} }};

static void {run}(void *{raw}, int64_t {part})
{{
    const struct {context} *{c} = (const struct {context} *){raw};
    {signature.name}({arguments});
}}"""
    )
    values: list[str] = []
    for value, parameter in zip(call.arguments[1:], parameters, strict=True):
        if not is_memref(value.type):
            values.append(p.expr(value).text)
            continue
        buffer = p.buffer(value)
        cast = f"({'const ' if parameter.is_const else ''}{parameter.ctype} *)"
        values.append(buffer.pointer if parameter.ctype == buffer.ctype else cast + buffer.pointer)
    count = p.expr(op.upperBound[0]).text
    p.flush_reads()
    name = p.names.take("context")
    p.statement(f"struct {context} {name} = {{{', '.join(values)}}};")
    p.statement(f"{RUN_PARTS}({count}, {run}, &{name});")
    return True
