"""What a C file consists of, and how it is cut into units that compile in parallel.

    one file                           two units
    --------                           ---------
    includes, types                    includes, types             includes, types
    arrays                             arrays
    helpers                            helpers                     helpers
    static void r_4(...) {...}         hidden: r_4, e_3            hidden: r_4, e_3
    static void e_3(...) {...}         void main(...) {...}        void e_3(...) {...}
    void main(...) {...}               void r_4(...) {...}

The file is what a person takes home. The units make the same shared object: what was static in the
file and is called across units has hidden visibility there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from uopc.lowering.c_module import Signature
from uopc.lowering.c_threads import RUN_PARTS, runner_declaration, runner_text

UNIT_CHARACTERS = 24_000
"""A unit of less text is not worth a process of its own: some 0.15 s of gcc -O2."""
MAX_UNITS = 16

CPP_OPEN = ["#ifdef __cplusplus", 'extern "C" {', "#endif"]
CPP_CLOSE = ["#ifdef __cplusplus", "}", "#endif"]

_HIDDEN = '__attribute__((visibility("hidden")))'


@dataclass(frozen=True)
class CFunction:
    """A function's definition."""

    symbol: str
    signature: Signature
    before: tuple[str, ...]
    """Definitions of its own that stand before it."""
    comments: tuple[str, ...]
    body: tuple[str, ...]
    """Its lines, without the braces."""
    calls: frozenset[str]
    """The symbols that it calls."""
    arrays: frozenset[str]
    """The file's arrays that it names."""

    def text(self, head: str) -> str:
        """The definition, behind the line or lines that declare it."""
        function = "\n".join([*self.comments, head, "{", *self.body, "}"])
        return "\n\n".join([*self.before, function])


@dataclass(frozen=True)
class CFile:
    """The sections of a C file, in their order."""

    opening: tuple[str, ...]
    """Includes, pragmas and types."""
    arrays: tuple[str, ...]
    helpers: Mapping[str, str]
    prototypes: tuple[str, ...]
    functions: tuple[CFunction, ...]
    closing: tuple[str, ...]
    parts_setter: str = field(default="")
    """The function that plugs a thread pool in; empty where nothing is parallel."""

    def text(self) -> str:
        """The one file."""
        return _joined(
            *self.opening,
            *self.arrays,
            *self.helpers.values(),
            "\n".join(self.prototypes),
            *(each.text(each.signature.head()) for each in self.functions),
            *self.closing,
        )

    def units(self, most: int) -> tuple[str, ...]:
        """The file as up to `most` files that make one shared object; the public functions and
        arrays are in the first. None where it is too short to gain from that."""
        sizes = {each.symbol: sum(map(len, each.body)) for each in self.functions}
        count = min(most, MAX_UNITS, sum(sizes.values()) // UNIT_CHARACTERS)
        if count < 2:
            return ()
        bins = _packed(_families(self.functions), sizes, count)
        return tuple(self._unit(members, index == 0) for index, members in enumerate(bins))

    def _unit(self, members: set[str], is_first: bool) -> str:
        helpers = dict(self.helpers)
        if RUN_PARTS in helpers:
            helpers[RUN_PARTS] = (
                runner_text(self.parts_setter, f"{_HIDDEN} ")
                if is_first
                else runner_declaration(f"extern {_HIDDEN} ")
            )
        prototypes = [line for line in self.prototypes if not line.startswith("static ")]
        prototypes += [
            f"{_HIDDEN} {_shared(each.signature)};"
            for each in self.functions
            if each.signature.is_static
        ]
        return _joined(
            *self.opening,
            *(self.arrays if is_first else ()),
            *helpers.values(),
            "\n".join(prototypes),
            *(
                each.text(_shared(each.signature))
                for each in self.functions
                if each.symbol in members
            ),
            *self.closing,
        )


def _joined(*sections: str) -> str:
    return "\n\n".join(filter(None, sections)) + "\n"


def _shared(signature: Signature) -> str:
    """The head of a function that other units may call."""
    return signature.head().removeprefix("static ")


def _families(functions: tuple[CFunction, ...]) -> list[list[CFunction]]:
    """What has to share a unit: first all that is public or names an array of the file, then each
    private function with the private ones it calls, which may be worth inlining."""
    by_symbol = {each.symbol: each for each in functions}
    callers: dict[str, set[str]] = {}
    for each in functions:
        for callee in each.calls & by_symbol.keys():
            callers.setdefault(callee, set()).add(each.symbol)
    first = [each for each in functions if not each.signature.is_static or each.arrays]
    placed = {each.symbol for each in first}
    families = [first]
    for each in functions:
        inner = any(by_symbol[c].signature.is_static for c in callers.get(each.symbol, ()))
        if each.symbol in placed or inner:
            continue
        family = list[CFunction]()
        work = [each]
        while work:
            member = work.pop()
            if member.symbol not in placed:
                placed.add(member.symbol)
                family.append(member)
                work.extend(by_symbol[c] for c in member.calls if c in by_symbol)
        families.append(family)
    # What only such functions call that call each other in a ring.
    first.extend(each for each in functions if each.symbol not in placed)
    return families


def _packed(
    families: list[list[CFunction]], sizes: Mapping[str, int], count: int
) -> list[set[str]]:
    """The families in `count` bins of about equal sizes, the first of them in the first."""
    weight = [sum(sizes[each.symbol] for each in family) for family in families]
    bins = [{each.symbol for each in families[0]}, *(set[str]() for _ in range(count - 1))]
    loads = [weight[0], *(0 for _ in range(count - 1))]
    for index in sorted(range(1, len(families)), key=lambda i: -weight[i]):
        lightest = loads.index(min(loads))
        loads[lightest] += weight[index]
        bins[lightest].update(each.symbol for each in families[index])
    return [members for members in bins if members]
