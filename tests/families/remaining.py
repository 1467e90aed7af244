"""Compat, PairAccuracy, GAP, Q, NCG, Fallout, Generality and AWRF, and the variants of RR."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

NEEDED: dict[str, Any] = {"NCG.cutoff": 1}  # of [1, 1, 2] only the first rank shows that a grade was raised

VARIED: dict[str, list[Any]] = {
    "which": ["last"],
    "normalize": [False],
    "Compat.p": [0.5, 0.99],
    "AWRF.p": [0.5, 0, 1],
    "g": [{1: 1.0}, {1: 0.5, 2: 0.25, 4: 0.25}, {0.5: 0.333, 1: 0.333, 2: 0.333}],
    "Q.beta": [0, 0.5, 100],
    "NCG.cutoff": [2, 3, 10],
    "target": ["collection", {"a": 0.25, "b": 0.75}, {"b": 0.5, "other": 0.5}],
}

_eighths = st.sampled_from([(1.0,), (0.5, 0.5), (0.125, 0.875), (0.25, 0.5, 0.25), (0.375, 0.125, 0.25, 0.25)])


def _shares(keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[Any, float]]:
    return _eighths.flatmap(
        lambda shares: st.lists(keys, min_size=len(shares), max_size=len(shares), unique=True).map(
            lambda names: dict(zip(names, shares, strict=True))
        )
    )


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "which": st.sampled_from(["first", "last"]),
    "normalize": st.booleans(),
    "Compat.p": st.floats(0, 1),
    "AWRF.p": st.floats(0, 1),
    "g": st.just("equal") | _shares(st.floats(1e-6, 1e6) | st.integers(1, 20).map(float)),
    "target": st.sampled_from(["relevant", "collection"])
    | _shares(st.text(st.characters(exclude_characters=",:{}"), min_size=1).map(str.strip).filter(bool)),
}

ORACLE: dict[str, Any] = {
    "Compat": (
        "Compat(p=0.5)",
        [0, 3],
        [],
        (2 * math.log(2) - 1) / (2 * math.log(2)),
        "by hand: the sum of 0.5^(d-1) / d, from d = 2 on, over the whole sum, which is 2 ln 2",
    ),
    "PairAccuracy": ("PairAccuracy", [1, 0, None, 1, 0], [1], 1 - 2 / 6, "by hand; ir_measures 0.4.3 prints 0.6667"),
    "GAP": ("GAP", [1, 0, 2, 2], [1], (1 + (1 + 2) / 3 + (1 + 2 + 2) / 4) / 6, "by hand"),
    "Q": ("Q", [0, 3, None, 2], [3, 3, 2, 2, 1, 1, 1, 1], (4 / 8 + 7 / 15) / 10, "by hand; NTCIREVAL prints 0.0967"),
    "NCG": ("NCG@2", [2, 1], [3], 3 / 5, "by hand: ideal 3 + 2"),
    "Fallout": ("Fallout(n=100)", [1, 0, None], [1], 2 / 98, "by hand"),
    "Generality": ("Generality(n=100)", [1, 0], [2], 2 / 100, "by hand"),
    "AWRF": (
        "AWRF(p=0.5,target={a:0.5,b:0.5})",
        [1, 0],
        [],
        # exposure 2/3 and 1/3 against 1/2 and 1/2: the means are 7/12 and 5/12
        1 - (2 / 3 * math.log(8 / 7) + 1 / 3 * math.log(4 / 5) + math.log(6 / 7) / 2 + math.log(6 / 5) / 2) / 2,
        "by hand",
        {"facts": {"group": ["a", "b"]}},
    ),
}

SETS = {"Fallout": 2 / 998, "Generality": 2 / 1000}
