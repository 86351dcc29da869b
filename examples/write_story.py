"""Writes examples/story.txt, the text that examples/gpt.py learns from.

    python examples/write_story.py > examples/story.txt

A small grammar and a fixed seed: scenes of a play in a harbour town, 65 different characters in
all. The text may be used by anybody for anything.
"""

from __future__ import annotations

import random

PEOPLE = [
    "Agnes", "Bertram", "Clara", "Dunstan", "Edith", "Fergus", "Greta", "Hollis", "Ivo", "Joan",
    "Kit", "Lionel", "Maud", "Ned", "Olive", "Piers", "Queenie", "Rufus", "Sybil", "Tobias",
    "Una", "Victor", "Wilfred", "Xanthe", "Yorick", "Zelda",
]  # fmt: skip
PLACES = [
    "the old pier", "the salt market", "the lantern room", "the lower quay", "the rope walk",
    "the fish stairs", "the chapel yard", "the inn by the weir", "the harbour wall",
]  # fmt: skip
THINGS = [
    "lantern", "anchor", "kettle", "letter", "ladder", "coat", "oar", "net", "bell", "map",
    "basket", "candle", "key", "fiddle", "barrel", "boat", "loaf", "ribbon",
]  # fmt: skip
KINDS = [
    "old", "small", "heavy", "broken", "bright", "wet", "quiet", "crooked", "warm", "borrowed",
    "green", "lost", "good", "silver", "frozen",
]  # fmt: skip
DOING = [
    "mend", "carry", "find", "hide", "paint", "sell", "borrow", "fetch", "keep", "watch", "fix",
    "quit", "join",
]  # fmt: skip
SKY = [
    "The fog is thick", "The tide is low", "The wind has turned", "It rains again",
    "The moon is up", "The gulls are loud", "The sea is calm", "A storm is near",
]  # fmt: skip
WHEN = [
    "before the tide turns", "when the bell rings", "at first light", "after supper",
    "while the town is asleep", "as soon as it is dark", "if the wind allows",
]  # fmt: skip
OATHS = ["Upon my word", "By the tide", "Truly", "Bless me", "I tell you", "Listen"]


def thing(r: random.Random) -> str:
    return f"{r.choice(['the', 'my', 'your', 'that', 'a'])} {r.choice(KINDS)} {r.choice(THINGS)}"


def saying(r: random.Random, other: str) -> str:
    """One sentence that somebody says to another."""
    kind = r.randrange(9)
    if kind == 0:
        return f"{r.choice(SKY)}, and {thing(r)} is still at {r.choice(PLACES)}."
    if kind == 1:
        return f"Will you {r.choice(DOING)} {thing(r)} {r.choice(WHEN)}?"
    if kind == 2:
        return f"{r.choice(OATHS)}, {other}, I did not {r.choice(DOING)} {thing(r)}!"
    if kind == 3:
        return f"I shall {r.choice(DOING)} {thing(r)}; you may {r.choice(DOING)} {thing(r)}."
    if kind == 4:
        return f"Who would {r.choice(DOING)} {thing(r)} at {r.choice(PLACES)}?"
    if kind == 5:
        return f"Don't {r.choice(DOING)} it, {other}: it's {thing(r)}, not {thing(r)}."
    if kind == 6:
        return f"{r.choice(SKY)}. Meet me at {r.choice(PLACES)} {r.choice(WHEN)}."
    if kind == 7:
        return f'They call it "{r.choice(KINDS)} {r.choice(THINGS)}" at {r.choice(PLACES)}.'
    return f"We {r.choice(DOING)} what we can, and {r.choice(DOING)} the rest {r.choice(WHEN)}."


def action(r: random.Random, who: str) -> str:
    verb = r.choice(["takes", "drops", "looks at", "hides", "holds up", "puts away"])
    return f"({who} {verb} {thing(r)}.)"


def scene(r: random.Random) -> str:
    first, second, third = r.sample(PEOPLE, 3)
    lines = [f"{r.choice(SKY)}. {first} and {second} at {r.choice(PLACES)}.", ""]
    speaker, other = first, second
    for _ in range(r.randint(5, 9)):
        lines.append(f"{speaker}: {' '.join(saying(r, other) for _ in range(r.randint(1, 2)))}")
        if r.random() < 0.2:
            lines.append(action(r, r.choice([speaker, other])))
        if r.random() < 0.15:
            speaker, third = third, speaker
        speaker, other = other, speaker
    exits = r.choice(["goes out", "leaves by the half-open door", "runs off", "sits down at last"])
    return "\n".join([*lines, f"{speaker} {exits}.", "", ""])


def story(length: int = 64_000) -> str:
    """Scenes, until there are so many characters."""
    r = random.Random(7)
    parts: list[str] = []
    while sum(map(len, parts)) < length:
        parts.append(scene(r))
    return "".join(parts)


if __name__ == "__main__":
    print(story(), end="")
