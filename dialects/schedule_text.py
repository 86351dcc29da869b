"""The language of schedules: how a kernel's ranges are split, tiled, marked and ordered.

    schedule ::= command ((";" | newline) command)*
    command  ::= contract                                sums of products fuse their multiply-add
               | pair R as R'                            sums of products of bf16 go in twos along R
               | split R = R0(:KIND)? R1:N(:KIND)? …     R is R0*N… + R1*… + …; a rest is guarded
               | tile V over I … as R' … (in SPACE)?     V at all I in a buffer, filled by R'
               | capture V R as R'                       a tile has one more dimension, outermost
               | layout V R' …                           the order of a tile's dimensions
               | merge R S as T                          two ranges become one, row-major
               | fuse R into S                           two ranges of equal ends become one
               | bound R = E finite?                     a range ends where nothing follows
               | pad V R to N                            a tile has N places along R
               | stream                                  stores go past the caches
               | prefetch V along R                      a load asks for the next step's place
               | mark R KIND                             how a range runs
               | order R …                               loops, outermost first
    I        ::= R | a sum of ranges without spaces, y+ky or y*2+ky, that V depends on as a whole
    KIND     ::= loop | unroll | vector | thread | block | lane
    SPACE    ::= local | shared                      shared: by the threads of a GPU's block

E is an index expression over ranges and sizes (schedule_expression.py).
R is a range's name and V a value's, as they stand in the kernel's text. A split of a reduction
keeps one accumulator for each copy and lane (their sum is a tree); `chain` at its end keeps one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from uopc.dialects.errors import UopcError
from uopc.dialects.schedule_expression import parse_expression

KINDS = ("loop", "unroll", "vector", "thread", "block", "lane")
SPACES = ("local", "register", "shared")
MAX_COPIES = 1024
"""The largest part of a split that is unrolled or a vector."""
MAX_PART = 1 << 31
"""The largest part of any kind."""


@dataclass(frozen=True)
class Part:
    """One part of a split: a range of `size` steps; the outermost has none of its own."""

    name: str
    size: int | None
    kind: str | None

    def __str__(self) -> str:
        size = "" if self.size is None else f":{self.size}"
        return self.name + size + (f":{self.kind}" if self.kind else "")


@dataclass(frozen=True)
class Contract:
    def __str__(self) -> str:
        return "contract"


@dataclass(frozen=True)
class Pair:
    range: str
    name: str

    def __str__(self) -> str:
        return f"pair {self.range} as {self.name}"


@dataclass(frozen=True)
class Split:
    range: str
    parts: tuple[Part, ...]
    chain: bool = False

    def __str__(self) -> str:
        parts = " ".join(map(str, self.parts))
        return f"split {self.range} = {parts}" + (" chain" if self.chain else "")


@dataclass(frozen=True)
class Tile:
    value: str
    over: tuple[str, ...]
    names: tuple[str, ...]
    space: str = "local"

    def __str__(self) -> str:
        space = "" if self.space == "local" else f" in {self.space}"
        return f"tile {self.value} over {' '.join(self.over)} as {' '.join(self.names)}{space}"


@dataclass(frozen=True)
class Capture:
    value: str
    range: str
    name: str

    def __str__(self) -> str:
        return f"capture {self.value} {self.range} as {self.name}"


@dataclass(frozen=True)
class Layout:
    value: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"layout {self.value} {' '.join(self.names)}"


@dataclass(frozen=True)
class Merge:
    outer: str
    inner: str
    name: str

    def __str__(self) -> str:
        return f"merge {self.outer} {self.inner} as {self.name}"


@dataclass(frozen=True)
class Fuse:
    range: str
    into: str

    def __str__(self) -> str:
        return f"fuse {self.range} into {self.into}"


@dataclass(frozen=True)
class Mark:
    range: str
    kind: str

    def __str__(self) -> str:
        return f"mark {self.range} {self.kind}"


@dataclass(frozen=True)
class Order:
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"order {' '.join(self.names)}"


@dataclass(frozen=True)
class Bound:
    """A range ends at an expression over the ranges around it, kept as its text."""

    range: str
    end: str
    finite: bool = False

    def __str__(self) -> str:
        return f"bound {self.range} = {self.end}" + (" finite" if self.finite else "")


@dataclass(frozen=True)
class Pad:
    value: str
    range: str
    places: int

    def __str__(self) -> str:
        return f"pad {self.value} {self.range} to {self.places}"


@dataclass(frozen=True)
class Stream:
    def __str__(self) -> str:
        return "stream"


@dataclass(frozen=True)
class Prefetch:
    value: str
    range: str

    def __str__(self) -> str:
        return f"prefetch {self.value} along {self.range}"


Command = (
    Contract
    | Pair
    | Split
    | Tile
    | Capture
    | Layout
    | Merge
    | Fuse
    | Bound
    | Pad
    | Stream
    | Prefetch
    | Mark
    | Order
)


def schedule_text(commands: list[Command]) -> str:
    """Commands as text, one after another."""
    return "; ".join(map(str, commands))


def parse_schedule(text: str) -> list[Command]:
    """The commands of a schedule. Raises UopcError [bad-schedule] for what is none."""
    return [_parse(line) for line in _lines(text)]


def _lines(text: str) -> Iterator[str]:
    for line in re.split(r"[;\n]", text):
        plain = line.partition("#")[0].strip()
        if plain:
            yield plain


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_FORMS = {
    "contract": "contract",
    "pair": "pair R as R'",
    "split": "split R = R0 R1:N:KIND …",
    "tile": "tile V over R … as R' … in SPACE; for R also a sum like y+ky, without spaces",
    "capture": "capture V R as R'",
    "layout": "layout V R …",
    "merge": "merge R S as T",
    "fuse": "fuse R into S",
    "bound": "bound R = E, an expression over ranges and sizes; finite at its end",
    "pad": "pad V R to N",
    "stream": "stream",
    "prefetch": "prefetch V along R",
    "mark": "mark R KIND",
    "order": "order R …",
}


def bad_schedule(line: object, message: str, hint: str = "") -> UopcError:
    """A schedule that cannot be applied, with the command that is wrong."""
    return UopcError("bad-schedule", f"in '{line}': {message}", hint=hint)


def _parse(line: str) -> Command:
    word, *rest = line.split()
    if word not in _FORMS:
        raise bad_schedule(
            line, f"there is no command '{word}'", f"expected one of: {', '.join(_FORMS)}"
        )
    try:
        command = _parse_command(line, word, rest)
    except ValueError:
        command = None
    if command is None:
        raise bad_schedule(line, "it is not well formed", f"expected {_FORMS[word]}")
    return command


def _parse_command(line: str, word: str, rest: list[str]) -> Command | None:
    match word, rest:
        case "contract", []:
            return Contract()
        case "pair", [name, "as", new]:
            return Pair(_name(name), _name(new))
        case "stream", []:
            return Stream()
        case "prefetch", [value, "along", name]:
            return Prefetch(_name(value), _name(name))
        case "split", [name, "=", *parts]:
            chain = parts[-1:] == ["chain"]
            parsed = tuple(_part(line, p) for p in (parts[:-1] if chain else parts))
            if len(parsed) < 2 or parsed[0].size is not None:
                return None
            if any(p.size is None for p in parsed[1:]):
                return None
            return Split(_name(name), parsed, chain)
        case "tile", [value, "over", *more]:
            cut = more.index("as")
            over, names = more[:cut], more[cut + 1 :]
            space = "local"
            if names[-2:-1] == ["in"]:
                names, space = names[:-2], names[-1]
            if space not in SPACES:
                raise bad_schedule(
                    line, f"there is no space '{space}'", f"expected {', '.join(SPACES)}"
                )
            if not over or len(over) != len(names):
                hint = "write sums without spaces: y+ky" if "+" in over else ""
                raise bad_schedule(line, "a tile has a new range for each that it is over", hint)
            return Tile(_name(value), tuple(map(_index, over)), _names(names), space)
        case "capture", [value, name, "as", new]:
            return Capture(_name(value), _name(name), _name(new))
        case "layout", [value, *names] if names:
            return Layout(_name(value), _names(names))
        case "merge", [outer, inner, "as", name]:
            return Merge(_name(outer), _name(inner), _name(name))
        case "fuse", [name, "into", into]:
            return Fuse(_name(name), _name(into))
        case "bound", [name, "=", *end] if end:
            finite = len(end) > 1 and end[-1] == "finite"
            expression = " ".join(end[:-1] if finite else end)
            parse_expression(expression)
            return Bound(_name(name), expression, finite)
        case "pad", [value, name, "to", places] if places.isdigit():
            return Pad(_name(value), _name(name), int(places))
        case "mark", [name, kind]:
            return Mark(_name(name), _kind(line, kind))
        case "order", [*names] if names:
            return Order(_names(names))
        case _:
            return None


def _name(text: str) -> str:
    if not _NAME.match(text):
        raise ValueError(text)
    return text


def _index(text: str) -> str:
    """A range, or an expression without spaces."""
    parse_expression(text)
    return text


def _names(texts: list[str]) -> tuple[str, ...]:
    return tuple(map(_name, texts))


def _kind(line: str, text: str) -> str:
    if text not in KINDS:
        raise bad_schedule(line, f"there is no kind '{text}'", f"expected {', '.join(KINDS)}")
    return text


def _part(line: str, text: str) -> Part:
    name, *options = text.split(":")
    size: int | None = None
    kind: str | None = None
    if options and options[0].isdigit():
        size = int(options.pop(0))
        if size > MAX_PART:
            raise bad_schedule(line, f"a part of {size} steps", f"expected at most {MAX_PART}")
        if size < 1:
            raise bad_schedule(line, f"a part of {size} steps", "expected at least 1")
    elif options and options[0] == "":
        options.pop(0)
    if options and re.fullmatch(r"[-+]?[0-9.]+", options[0]):  # -3 or 2.5, where a size belongs
        raise bad_schedule(line, f"a part of {options[0]} steps", "expected a size of at least 1")
    if options:
        kind = _kind(line, options.pop(0))
    if options:
        raise ValueError(text)
    if kind in ("unroll", "vector") and size is not None and size > MAX_COPIES:
        raise bad_schedule(line, f"{size} copies", f"expected at most {MAX_COPIES}")
    if kind == "vector" and size is not None and size & (size - 1):
        raise bad_schedule(line, f"a vector of {size} lanes", "expected a power of two")
    return Part(_name(name), size, kind)
