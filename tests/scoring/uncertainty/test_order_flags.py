"""What the measures declare of the order of documents: `additive` and `better_first`, and what they do not."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from judged.scoring.judging.judged import place_hits
from judged.scoring.measures import parse
from scoring.uncertainty.enumeration import Case, seeded, some_case
from variants import ALL

if TYPE_CHECKING:
    from random import Random

    from judged import Judged
    from judged.scoring.measures import Measure

NOT_ADDITIVE = "AP RR ERR Success GMAP SetAP Q GAP Bpref GMBpref Yaap BinG G nDCGrel AP11 IPrec InfAP Compat"
NOT_BETTER_FIRST = "Bpref Judged@3 Unjudged@3 Fallout(n=50)@3 Q G InfAP RR(which=last)@3 AP(norm=returned)@3"
PLAIN = [one for one in ALL if one.entry.name not in {"TBG", "UMeasure", "AWRF", "Hole"}]
PLAIN = [one for one in PLAIN if getattr(one, "costs", "unit") == "unit"]


def lists(chance: Random, count: int) -> list[tuple[Judged, int]]:
    """Judge lists of three to eight documents without ties, and say how many documents each has."""
    made: list[tuple[Judged, int]] = []
    while len(made) < count:
        case = some_case(chance)
        groups = {"a": [[doc] for doc in itertools.chain(*case.groups["a"])]}
        if len(groups["a"]) > 2:
            judged = Case({"a": case.labels["a"]}, groups, None).judged()
            made.append((judged, len(groups["a"])))
    return made


def shares_of_one(judged: Judged, length: int, chance: Random, count: int = 25) -> Judged:
    """Make fours of variants: one hit at a rank, among others, without them but for some, and both without it."""
    variants: list[list[tuple[int, int]]] = []
    for _ in range(count):
        hit, rank = chance.randrange(len(judged.rank)), chance.randint(1, length)
        others = [other for other in range(len(judged.rank)) if other != hit]
        places = [place for place in range(1, length + 1) if place != rank]
        for _ in range(2):
            around = list(zip(chance.sample(others, chance.randint(0, len(others))), places, strict=False))
            chance.shuffle(places)
            variants += [[(hit, rank), *around], around]
    rows = [(at, *pair) for at, pairs in enumerate(variants) for pair in pairs]
    variant, hit, rank = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return place_hits(judged, np.zeros(len(variants), dtype=np.int64), variant, hit, rank)


def additive_fails(one: Measure, variants: Judged) -> bool:
    scores = one(variants).reshape(-1, 4)
    scale = 1e-9 * max(1.0, np.abs(scores).max())
    return bool((np.abs((scores[:, 0] - scores[:, 1]) - (scores[:, 2] - scores[:, 3])) > scale).any())


def exchanged(judged: Judged, length: int, chance: Random, count: int = 40) -> tuple[Judged, list[bool]]:
    """Make pairs of variants that differ by an exchange, the better document below and then above."""
    grades = dict(zip((judged.rank - 1).tolist(), judged.grade.tolist(), strict=True))
    ranks: list[list[int]] = []
    equal: list[bool] = []
    for _ in range(count):
        order = chance.sample(range(1, length + 1), length)
        worse, better = sorted(chance.sample(range(length), 2), key=lambda doc: grades.get(doc, 0.0))
        below, above = sorted((order[worse], order[better]), reverse=True)
        for high, low in ((worse, better), (better, worse)):
            ranks.append([above if doc == high else below if doc == low else order[doc] for doc in range(length)])
        equal.append(grades.get(better, 0.0) == grades.get(worse, 0.0))
    hits = len(judged.rank)
    placed_at = np.array(ranks)[:, judged.rank - 1].ravel()
    variant, hit = np.repeat(np.arange(len(ranks)), hits), np.tile(np.arange(hits), len(ranks))
    return place_hits(judged, np.zeros(len(ranks), dtype=np.int64), variant, hit, placed_at), equal


def better_first_fails(one: Measure, variants: Judged, equal: list[bool]) -> bool:
    scores = one(variants).reshape(-1, 2)
    gain = scores[:, 1] - scores[:, 0]
    scale = 1e-12 * max(1.0, np.abs(scores).max())
    return bool((gain < -scale).any() or (np.abs(gain[np.array(equal)]) > scale).any())


@pytest.mark.parametrize("seed", range(5))
def test_declared_flags_hold(seed: int) -> None:
    chance = seeded(seed)
    found = [pair for pair in lists(chance, 12) if len(pair[0].rank)]
    for judged, length in found:
        apart, (pairs, equal) = shares_of_one(judged, length, chance), exchanged(judged, length, chance)
        for one in PLAIN:
            if one.properties.additive:
                assert not additive_fails(one, apart), one
            if one.properties.better_first:
                assert not better_first_fails(one, pairs, equal), one


def test_what_is_not_declared_does_not_hold() -> None:
    chance = seeded(5)
    found = [pair for pair in lists(chance, 120) if len(pair[0].rank)]
    made = [(shares_of_one(*pair, chance), *exchanged(*pair, chance)) for pair in found]
    for name in NOT_ADDITIVE.split():
        one = parse(name + "(max=4)" if name == "ERR" else name + {"Success": "@3", "IPrec": "@0.5"}.get(name, ""))
        assert not one.properties.additive
        assert any(additive_fails(one, apart) for apart, _, _ in made), name
    for name in NOT_BETTER_FIRST.split():
        assert not parse(name).properties.better_first
        assert any(better_first_fails(parse(name), pairs, equal) for _, pairs, equal in made), name


def test_parameters_take_flags_back() -> None:
    for name in ("nDCG(judged_only=true)", "AP(judged_only=true)", "SDCG(max=4,costs=column)@5"):
        assert (parse(name).properties.additive, parse(name).properties.better_first) == (False, False), name
    for name in ("nDCG(gain={0:1})", "P(rel=0)@5", "INSQ(max=4,residual=true)"):
        assert (parse(name).properties.additive, parse(name).properties.better_first) == (True, False), name
