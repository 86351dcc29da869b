"""Draws the pictures of the documents from real plans.

    python docs/pictures/draw.py          needs matplotlib: pip install 'uopc[docs]'

A plan as a timeline: its kernels in the order of their launches, and under them each buffer as a
bar from where its contents begin to where they are last needed. An arrow down is a write, an arrow
up a read. The description inside the SVG is the plan's table, which a test compares.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

PICTURES = ("softmax", "mlp")
"""Names of examples; each becomes NAME.svg."""

INK, QUIET, PAPER = "#1f2430", "#6b7280", "#ffffff"
COLOURS = {"in": "#9aa5b8", "const": "#c2b280", "tmp": "#e8873a", "out": "#2a9d8f"}
KERNEL_FACE, KERNEL_EDGE = "#eef3fb", "#4a6fa5"

COLUMN = 2.6
"""Inches from one launch to the next."""
LABELS = 2.5
ROW = 0.5
BOX_WIDTH, BOX_HEIGHT = 2.2, 1.0
TOP = 0.5


@dataclass(frozen=True)
class Bar:
    """A buffer: its label, where it is written, read, and needed (launches count from 0)."""

    ref: str
    label: str
    note: str
    writes: tuple[int, ...]
    reads: tuple[int, ...]

    def span(self, launches: int) -> tuple[float, float]:
        """First and last launch that need its contents; inputs and outputs reach outside."""
        touched = [*self.writes, *self.reads]
        first = -0.5 if not self.writes else min(touched)
        last = launches - 0.5 if self.ref.startswith("out") else max(touched, default=first)
        return first, last


def example_plan(name: str) -> Any:
    """The plan of examples/NAME.mlir."""
    from uopc.frontend.compile import CompileRequest, lower, read_program

    module = read_program(ROOT / "examples" / f"{name}.mlir")
    return lower(module, CompileRequest()).plans[0]


def bars(plan: Any) -> list[Bar]:
    """The plan's buffers in the order in which they are first touched."""
    found: list[tuple[int, Bar]] = []
    for buffer in (*plan.inputs, *plan.constants, *plan.temps, *plan.outputs):
        writes: list[int] = []
        reads: list[int] = []
        for position, call in enumerate(plan.kernels):
            cut = len(call.refs) - call.writes
            if buffer.ref in call.refs[cut:]:
                writes.append(position)
            if buffer.ref in call.refs[:cut]:
                reads.append(position)
        name = buffer.name if buffer.name != buffer.ref else buffer.ref
        shape = "×".join(map(str, buffer.shape)) or "scalar"
        place = f"workspace byte {buffer.offset:,}" if buffer.offset >= 0 else _role(buffer.ref)
        bar = Bar(buffer.ref, name, f"{shape} {buffer.dtype}, {place}", (*writes,), (*reads,))
        found.append((min(writes, default=-1), bar))
    return [bar for _, bar in sorted(found, key=lambda pair: pair[0])]


def _role(ref: str) -> str:
    return {"in": "input", "const": "constant", "out": "output"}[ref.rstrip("0123456789")]


def plotting(module: str) -> Any:
    """A module of matplotlib, which only this script needs."""
    return importlib.import_module(module)


def draw(plan: Any, file: Path) -> None:
    """Draw a plan's timeline."""
    matplotlib = plotting("matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": plan.name, "font.family": "DejaVu Sans"})
    pyplot = plotting("matplotlib.pyplot")
    from uopc.lowering.plan_text import plan_table, signature_text

    rows, launches = bars(plan), len(plan.kernels)
    width = LABELS + launches * COLUMN + 0.3
    height = TOP + BOX_HEIGHT + 0.35 + len(rows) * ROW + 0.5
    figure = pyplot.figure(figsize=(width, height), facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    axes.text(0.2, 0.3, signature_text(plan), fontsize=12, color=INK, weight="bold", va="center")
    _draw_kernels(axes, plan.kernels)
    for position, bar in enumerate(rows):
        _draw_bar(axes, bar, TOP + BOX_HEIGHT + 0.6 + position * ROW, plan.kernels)
    _draw_legend(axes, width, height - 0.25)
    figure.savefig(file, facecolor=PAPER, metadata={"Date": None, "Description": plan_table(plan)})
    pyplot.close(figure)


def _centre(position: float) -> float:
    return LABELS + (position + 0.5) * COLUMN


def _draw_kernels(axes: Any, kernels: Sequence[Any]) -> None:
    box = plotting("matplotlib.patches").FancyBboxPatch
    for position, call in enumerate(kernels):
        x = _centre(position)
        style = "round,pad=0,rounding_size=0.08"
        axes.add_patch(
            box(
                (x - BOX_WIDTH / 2, TOP + 0.1), BOX_WIDTH, BOX_HEIGHT, boxstyle=style,
                facecolor=KERNEL_FACE, edgecolor=KERNEL_EDGE, linewidth=1.4,
            )
        )  # fmt: skip
        title = f"{position + 1}  {call.name}"
        axes.text(
            x, TOP + 0.32, title, fontsize=11, color=INK, weight="bold", ha="center", va="center"
        )
        for line, words in enumerate(_box_lines(call.doc)):
            y = TOP + 0.6 + 0.2 * line
            axes.text(x, y, words, fontsize=9, color=INK, ha="center", va="center")
        cost = f"{call.flops:,} ops, {call.bytes:,} bytes"
        axes.text(x, TOP + 0.97, cost, fontsize=8, color=QUIET, ha="center", va="center")


def _draw_bar(axes: Any, bar: Bar, y: float, kernels: Sequence[Any]) -> None:
    colour = COLOURS[bar.ref.rstrip("0123456789")]
    first, last = bar.span(len(kernels))
    half = COLUMN / 2 - 0.2
    left = _centre(first) - (half if bar.writes else -0.2)
    right = _centre(last) + (-0.2 if last > len(kernels) - 1 else half)
    axes.text(0.2, y - 0.09, bar.label, fontsize=10, color=INK, weight="bold", va="center")
    axes.text(0.2, y + 0.11, bar.note, fontsize=8, color=QUIET, va="center")
    axes.plot([left, right], [y, y], color=colour, linewidth=9, solid_capstyle="round", zorder=2)
    bottom = TOP + 0.1 + BOX_HEIGHT
    arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
    for launches, downward in ((bar.writes, True), (bar.reads, False)):
        for position in launches:
            x = _arrow_place(kernels[position], position, bar.ref)
            if downward:
                axes.annotate("", xy=(x, y + 0.02), xytext=(x, bottom), arrowprops=arrow, zorder=3)
            else:
                axes.annotate("", xy=(x, bottom), xytext=(x, y), arrowprops=arrow, zorder=3)
                axes.plot([x], [y], marker="o", markersize=4, color=INK, zorder=4)


def _arrow_place(call: Any, position: int, ref: str) -> float:
    """Arrows of one kernel stand side by side, in the order of its buffers."""
    order = list(dict.fromkeys(call.refs))
    share = (order.index(ref) + 0.5) / len(order) - 0.5
    return _centre(position) + share * BOX_WIDTH * 0.8


def _box_lines(text: str, width: int = 26) -> list[str]:
    """What a kernel computes on at most two lines, cut between ops."""
    lines = [""]
    for word in text.split(", "):
        if lines[-1] and len(lines[-1]) + len(word) + 2 > width:
            lines[-1] += ","
            lines.append(word)
        else:
            lines[-1] += (", " if lines[-1] else "") + word
    return lines if len(lines) <= 2 else [lines[0], f"{lines[1]} …"]


def _draw_legend(axes: Any, width: float, y: float) -> None:
    x = 0.2
    for ref, words in (("in", "input"), ("tmp", "temporary"), ("out", "output")):
        axes.plot([x, x + 0.25], [y, y], color=COLOURS[ref], linewidth=7, solid_capstyle="round")
        axes.text(x + 0.42, y, words, fontsize=8.5, color=INK, va="center")
        x += 1.25
    words = "bar: contents needed    ↓ write    ↑ read    time runs to the right"
    axes.text(width - 0.2, y, words, fontsize=8.5, color=QUIET, va="center", ha="right")


def main() -> None:
    """Draw all pictures into this folder, or into the one given."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name in PICTURES:
        draw(example_plan(name), folder / f"{name}.svg")
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    main()
