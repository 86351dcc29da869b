"""A plan as a table that a person reads.

softmax(x: f32[4x8]) -> f32[4x8]
  kernel  reads       writes  operations  bytes  computes
  r_4     in0         tmp0            32    144  reduce max [1]
  r_4     in0, tmp0   tmp1           132    160  sub, exp, reduce add [1]
  e_4_8   …
temporaries: 2, 128 bytes
"""

from __future__ import annotations

from collections.abc import Sequence

from uopc.lowering.plan import Buffer, Plan, Size


def plan_table(plan: Plan) -> str:
    """The plan as text, a line a kernel."""
    lines = [signature_text(plan)]
    rows = [("kernel", "reads", "writes", "operations", "bytes", "computes")]
    for call in plan.kernels:
        cut = len(call.refs) - call.writes
        rows.append(
            (
                " ".join((*call.inside, call.name)),
                ", ".join((*call.refs[:cut], *call.rewrites)) or "-",
                ", ".join(call.refs[cut:]),
                f"{call.flops:,}",
                f"{call.bytes:,}",
                _shortened(call.doc, 60),
            )
        )
    if plan.kernels:
        lines.extend(aligned(rows, right=(3, 4)))
    else:
        lines.append("  no kernels: every result is an input")
    for output in plan.outputs:
        if output.alias:
            over = any(b.ref == output.alias and b.changed for b in plan.inputs)
            how = "written over" if over else "unchanged"
            lines.append(f"  {output.ref} is {output.alias}, {how}")
    if plan.temps:
        lines.append(f"temporaries: {len(plan.temps)}, {plan.workspace_bytes:,} bytes")
    return "\n".join(lines)


def signature_text(plan: Plan) -> str:
    """`softmax(x: f32[4x8]) -> f32[4x8]`, and the bounds of the sizes."""
    arguments = ", ".join(f"{_printable(b.name)}: {_type(b)}" for b in plan.inputs)
    results = ", ".join(_type(b) for b in plan.outputs)
    text = f"{_printable(plan.name)}({arguments}) -> {results or 'nothing'}"
    for symbol in plan.symbols:
        text += f", {symbol.name} = {symbol.lower} to {symbol.upper}"
    return text


def _type(buffer: Buffer) -> str:
    return f"{buffer.dtype}[{'x'.join(map(_size, buffer.shape))}]"


def _size(size: Size) -> str:
    return str(size).replace(" ", "")


def _printable(text: str) -> str:
    """Names come from input: what a terminal would act on is shown as an escape."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _shortened(text: str, width: int) -> str:
    text = _printable(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int]) -> list[str]:
    """Rows as lines of columns, those of `right` flush right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines: list[str] = []
    for row in rows:
        cells = [
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines
