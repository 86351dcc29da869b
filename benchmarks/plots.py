"""The pictures of a run of `beside.py`: ratios as a chart, and uopc's kernels on a roofline.

python benchmarks/plots.py build/bench      draw both anew from results.json
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

INK, QUIET, GRID = "#1f2430", "#6b7280", "#e5e7eb"
AHEAD, BEHIND = "#2a9d8f", "#d1495b"

GROUPS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("products", "#4a6fa5", "o", ("matmul", "matmul_low", "mm_chain", "ln_matmul")),
    ("attention", "#8e5ea2", "^", ("attn", "attn_causal")),
    ("convolutions", "#e8873a", "s", ("conv", "resblock")),
    ("softmax, maps, sums", "#2a9d8f", "D", ("softmax", "chain", "sum0", "sum1", "sum_all", "max1",
                                             "argmax1", "tiny", "transpose")),
    ("GPT", "#9aa5b8", ".", ("train", "decode")),
)  # fmt: skip
"""What has a colour and a marker of its own on the roofline, and its kinds of works."""

LEFT_EDGE = 0.02
"""Operations per byte: kernels with fewer, which only move, stand at the edge."""
LEAST_SHARE = 0.05
"""Of a work's time: kernels that take less are drawn small, without a number."""
NEAR = ((6, -3, "left"), (-6, -3, "right"), (0, 6, "center"), (0, -12, "center"),
        (6, 4, "left"), (-6, 4, "right"), (6, -10, "left"), (-6, -10, "right"),
        (16, -3, "left"), (-16, -3, "right"), (0, 15, "center"), (0, -21, "center"))  # fmt: skip
"""Where a number may stand, in points from its dot, and which of its sides is there."""


def _pyplot() -> Any:
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("Agg")
    return import_module("matplotlib.pyplot")


def draw(result: dict[str, Any], folder: Path) -> list[str]:
    """Draw what a results.json holds; the files that were written."""
    written: list[str] = []
    for name, picture in (("ratios.png", draw_ratios), ("roofline.png", draw_roofline)):
        figure = picture(result)
        if figure is None:
            continue
        figure.savefig(folder / name, dpi=150)
        _pyplot().close(figure)
        written.append(str(folder / name))
    return written


def draw_ratios(result: dict[str, Any]) -> Any:
    """A bar for each work, from 1 to the ratio, with the spread of rounds; None without ratios."""
    rows = [row for row in result["rows"] if "ratio" in row]
    if not rows:
        return None
    height = 1.6 + 0.27 * len(rows)
    figure, axes = _pyplot().subplots(figsize=(8.5, height), layout="constrained")
    places = range(len(rows))
    ratios = [row["ratio"] for row in rows]
    colours = [AHEAD if ratio >= 1 else BEHIND for ratio in ratios]
    axes.barh(places, [r - 1 for r in ratios], left=1, height=0.62, color=colours, alpha=0.85)
    for place, row in zip(places, rows, strict=True):
        axes.plot((row["low"], row["high"]), (place, place), color=INK, linewidth=1.1)
    low = min(1.0, *(row["low"] for row in rows))
    high = max(1.0, *(row["high"] for row in rows))
    # Room on the right for the names of the libraries.
    _log_axis(axes, low / 1.15, high * 1.15 * (high / low) ** 0.16)
    for place, row in zip(places, rows, strict=True):
        axes.text(0.99, place, f"{row['best']}  {row['ratio']:.2f}", color=QUIET, fontsize=8,
                  ha="right", va="center", transform=axes.get_yaxis_transform())  # fmt: skip
    axes.set_yticks(places, [row["name"] for row in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.axvline(1, color=INK, linewidth=1)
    axes.set_xlabel(
        "time of the best other library / time of uopc; right of 1 uopc is faster", color=INK
    )
    axes.set_title(_title("uopc beside the best other library", result), loc="left", fontsize=10)
    _plain(axes, "x")
    return figure


def _log_axis(axes: Any, low: float, high: float) -> None:
    ticker: Any = import_module("matplotlib.ticker")
    axes.set_xscale("log", base=2)
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(ticker.LogLocator(base=2, numticks=20))
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))


def _title(text: str, result: dict[str, Any]) -> str:
    return f"{text}\n{result['processor']}, {result['threads']} threads, f32 unless said"


def _plain(axes: Any, grid: str = "both") -> None:
    axes.grid(axis=grid, which="major", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _points(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The kernels that have operations, with their work, its kind and their share of its time."""
    found: list[dict[str, Any]] = []
    for row in result["rows"]:
        whole = sum(kernel["seconds"] for kernel in row["kernels"]) or 1.0
        for kernel in row["kernels"]:
            if kernel["operations"] and kernel["bytes"]:
                found.append(kernel | {
                    "work": row["name"], "kind": row["kind"], "share": kernel["seconds"] / whole,
                    "x": max(LEFT_EDGE, kernel["operations"] / kernel["bytes"]),
                    "y": kernel["operations"] / kernel["seconds"] / 1e9,
                })  # fmt: skip
    return found


def draw_roofline(result: dict[str, Any]) -> Any:
    """uopc's kernels under what the machine reaches; None without kernels or ceilings."""
    points, ceilings = _points(result), result["ceilings"]
    if not points or isinstance(ceilings, str):
        return None
    figure, axes = _pyplot().subplots(figsize=(11, 6.8), layout="constrained")
    left = min(0.1, *(p["x"] for p in points)) / 1.3
    right = max(100.0, *(p["x"] for p in points)) * 2
    top = ceilings["gflops"] * 3
    bottom = max(min(p["y"] for p in points) / 2, top / 1e4)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    for name, colour, marker, kinds in GROUPS:
        own = [p for p in points if p["kind"] in kinds]
        if not own:
            continue
        small = name == "GPT"
        sizes = [14 if small or p["share"] < LEAST_SHARE else 34 for p in own]
        axes.scatter([p["x"] for p in own], [p["y"] for p in own], s=sizes, c=colour,
                     marker="o" if small else marker, label=name, alpha=0.45 if small else 0.95,
                     edgecolors="none" if small else "white", linewidths=0.6,
                     zorder=3 if small else 4)  # fmt: skip
    axes.set_xlabel(
        "operations per byte read or written, by the compiler's estimate "
        f"(fewer than {LEFT_EDGE} at the edge)"
    )
    axes.set_ylabel("GFLOP/s, the shortest of some warm runs")
    axes.set_title(
        _title("Each kernel of uopc under the machine's ceilings", result), loc="left", fontsize=10
    )
    axes.legend(loc="lower right", fontsize=8, frameon=False)
    _plain(axes)
    _number_points(figure, axes, [p for p in points if p["share"] >= LEAST_SHARE and _named(p)])
    # Last: the angles of its names are those of the axes as they are now.
    _draw_ceilings(axes, ceilings, left, right, bottom)
    return figure


def _named(point: dict[str, Any]) -> bool:
    return point["kind"] not in GROUPS[-1][3]


def _draw_ceilings(
    axes: Any, ceilings: dict[str, float], left: float, right: float, bottom: float
) -> None:
    """A slope for each memory, up to the flat line of multiply-adds, each with its name."""
    peak = ceilings["gflops"]
    axes.plot((peak / ceilings["cache"], right), (peak, peak), color=INK, linewidth=1.4)
    axes.text(peak / ceilings["cache"] * 1.2, peak * 1.07, f"{peak:.0f} GFLOP/s: multiply-add, f32",
              va="bottom", fontsize=8, color=INK)  # fmt: skip
    for name, what, style in (("memory", "memory", "-"), ("cache", "the cores' caches", "--")):
        rate = ceilings[name]
        start = max(left, bottom / rate)
        axes.plot((start, peak / rate), (start * rate, peak), color=INK, linewidth=1.4,
                  linestyle=style)  # fmt: skip
        place = start * 1.25
        axes.text(place, place * rate * 1.12, f"{rate:.0f} GB/s from {what}", fontsize=8,
                  color=INK, rotation=_slope(axes), rotation_mode="anchor")  # fmt: skip


def _slope(axes: Any) -> float:
    """The angle, in degrees, of a line whose y grows as its x, as it is drawn."""
    (x0, y0), (x1, y1) = axes.transData.transform([(1, 1), (10, 10)])
    return math.degrees(math.atan2(y1 - y0, x1 - x0))


def _number_points(figure: Any, axes: Any, points: Sequence[dict[str, Any]]) -> None:
    """The number of its work beside each point, where there is room, and on the right the names."""
    effects: Any = import_module("matplotlib.patheffects")
    halo = [effects.withStroke(linewidth=2, foreground="white")]
    works = list(dict.fromkeys(point["work"] for point in points))
    colours = {kind: colour for _, colour, _, kinds in GROUPS for kind in kinds}
    step = min(0.033, 0.97 / max(1, len(works)))
    for number, work in enumerate(works):
        kind = next(point["kind"] for point in points if point["work"] == work)
        axes.text(1.015, 0.985 - number * step, f"{number + 1}  {work}", fontsize=8, va="top",
                  color=colours[kind], transform=axes.transAxes)  # fmt: skip
    figure.canvas.draw()
    dots = axes.transData.transform([(p["x"], p["y"]) for p in points])
    taken: list[Any] = []
    for point, dot in sorted(zip(points, dots, strict=True), key=lambda pair: -pair[0]["share"]):
        for dx, dy, side in NEAR:
            text = axes.annotate(str(works.index(point["work"]) + 1), (point["x"], point["y"]),
                                 (dx, dy), textcoords="offset points", ha=side, fontsize=7.5,
                                 color=INK, zorder=6, path_effects=halo)  # fmt: skip
            box = text.get_window_extent()
            over = any(box.contains(*other) for other in dots if tuple(other) != tuple(dot))
            if not over and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()


def main(folder: Path) -> None:
    """Draw from the results.json in a folder."""
    result = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    print("\n".join(draw(result, folder)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
