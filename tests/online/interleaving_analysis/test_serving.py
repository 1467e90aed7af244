"""Interleaving methods produce the lists of their sources, and credit no ranker if clicks depend on rank only."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import judged.online.mixed_lists
from judged.online.mixed_lists import METHODS, TAU, Interleaved, interleave

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Coins:
    """Random source of one list, with fixed coin flips."""

    def __init__(self, coins: int) -> None:
        self.coins = coins

    def getrandbits(self, bits: int) -> int:
        return self.coins & ((1 << bits) - 1)


def every_coin(
    monkeypatch: pytest.MonkeyPatch, first: Sequence[str], second: Sequence[str], **options: str
) -> Iterator[Interleaved]:
    """Yield the list of every outcome of the coin flips; all are equally likely."""
    for coins in range(64):
        monkeypatch.setattr(judged.online.mixed_lists.random, "Random", lambda _key, coins=coins: Coins(coins))
        yield interleave(first, second, key="k", **options)  # type: ignore[arg-type]


def sums_by_rank(lists: Iterator[Interleaved]) -> dict[int, int]:
    """Sum the credit of a click at each rank, for users who click by rank only."""
    sums: dict[int, int] = defaultdict(int)
    for mixed in lists:
        for rank, team in enumerate(mixed.teams):
            sums[rank] += {"A": -1, "B": 1, None: 0}[team]
    return sums


@pytest.mark.parametrize("length", ["shorter", "longer"])
@pytest.mark.parametrize("method", ["team-draft", "balanced"])
def test_no_rank_is_preferred_whatever_the_lists(method: str, length: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [documents for size in range(5) for documents in permutations("abcx", size)]
    informative = 0
    for second in seconds:
        lists = list(every_coin(monkeypatch, "abcd", second, method=method, length=length))
        assert set(sums_by_rank(iter(lists)).values()) <= {0}, second
        informative += any(team for documents in lists for team in documents.teams)
    assert informative > 50  # lists that say something at all


@pytest.mark.parametrize("method", ["team-draft", "balanced"])
@pytest.mark.parametrize("size", [10, 5, 2, 1])
def test_ten_results_against_fewer(method: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drafter that goes on to ten prefers the longer list: 79 % of decided lists of 10 against 2, 92 % against 1."""
    first = [f"d{i}" for i in range(10)]
    for second in ([*reversed(first)][:size], [f"x{i}" for i in range(size)], first[1 : size + 1]):
        lists = list(every_coin(monkeypatch, first, second, method=method, length="longer"))
        assert set(sums_by_rank(iter(lists)).values()) == {0}
        assert {team for mixed in lists for team in mixed.teams[len(second) :]} <= {None}
        shorter = interleave(first, second, key="k", method=method)
        assert len(shorter.documents) == len(second)


def test_the_example_by_which_inverse_propensities_are_biased(monkeypatch: pytest.MonkeyPatch) -> None:
    """A = 1, 2, 3 and B = 2, 3, 1: both outcomes have B's 3 at rank 3, which therefore counts for neither."""
    lists = {mixed.documents: mixed.teams for mixed in every_coin(monkeypatch, "123", "231", method="balanced")}
    assert lists == {("1", "2", "3"): ("A", "B", None), ("2", "1", "3"): ("B", "A", None)}


@pytest.mark.parametrize("length", ["shorter", "longer"])
@pytest.mark.parametrize("method", ["team-draft", "balanced"])
def test_the_product_of_propensities_is_the_probability_of_the_list(
    method: str, length: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pairs of lists of up to four documents: 65 second lists, and every outcome of the coins."""
    cases = 0
    for second in (mixed for size in range(5) for mixed in permutations("abcx", size)):
        lists = list(every_coin(monkeypatch, "abcd", second, method=method, length=length))
        counts = Counter(mixed.documents for mixed in lists)
        for mixed in lists:
            product = Fraction(1)
            for propensity in mixed.propensities:
                product *= Fraction(propensity)
            assert product == Fraction(counts[mixed.documents], len(lists)), (second, mixed)
        prefixes = Counter(mixed.documents[:rank] for mixed in lists for rank in range(1, len(mixed.documents) + 1))
        for mixed in lists:  # each propensity is given the documents above it
            for rank in range(len(mixed.documents)):
                above = prefixes[mixed.documents[:rank]] if rank else len(lists)
                assert Fraction(mixed.propensities[rank]) == Fraction(prefixes[mixed.documents[: rank + 1]], above)
        cases += len(lists)
    assert cases == 65 * 64


def test_the_propensity_of_a_second_choice_after_a_shared_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A = a, b and B = a, c: both pick a first, and the coin decides whether b or c follows."""
    lists = {mixed.documents: mixed.propensities for mixed in every_coin(monkeypatch, "ab", "ac")}
    assert lists == {("a", "b"): (1.0, 0.5), ("a", "c"): (1.0, 0.5)}


def test_a_draft_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A = a, b, c, d and B = b, e, a, f: whoever picks first takes its best document, then the other one."""
    lists = {mixed.documents: mixed for mixed in every_coin(monkeypatch, "abcd", "beaf")}
    assert {documents: "".join(map(str, mixed.teams)) for documents, mixed in lists.items()} == {
        ("a", "b", "c", "e"): "ABAB",
        ("a", "b", "e", "c"): "ABBA",
        ("b", "a", "c", "e"): "BAAB",
        ("b", "a", "e", "c"): "BABA",
    }
    assert all(mixed.propensities == (0.5, 1.0, 0.5, 1.0) for mixed in lists.values())
    assert lists["a", "b", "c", "e"].attributes()["interleaving_ranks"] == "1/3 2/1 3/- -/2"


def softmax(documents: Sequence[str], picked: Sequence[str]) -> dict[str, Fraction]:
    weights = {
        document: Fraction(1, rank ** int(TAU)) for rank, document in enumerate(documents, 1) if document not in picked
    }
    return {document: weight / sum(weights.values()) for document, weight in weights.items()}


def drawn_lists(
    first: Sequence[str], second: Sequence[str], depth: int, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Fraction, tuple[Fraction, ...]]]:
    """Yield every list, its probability, and for each rank the probability that it is B's (Hofmann 2011)."""
    if len(above) == depth:
        yield above, Fraction(1), ()
        return
    first_shares, second_shares = softmax(first, above), softmax(second, above)
    for document in first_shares.keys() | second_shares.keys():
        p_a, p_b = first_shares.get(document, Fraction(0)), second_shares.get(document, Fraction(0))
        for documents, p, shares in drawn_lists(first, second, depth, (*above, document)):
            yield documents, (p_a + p_b) / 2 * p, (p_b / (p_a + p_b), *shares)


@pytest.mark.parametrize("second", ["bca", "xya", "b"])
def test_probabilistic_lists_come_as_often_as_they_should(second: str) -> None:
    depth = min(3, len(second))
    expected = {documents: chance for documents, chance, _ in drawn_lists("abc"[: len(second)], second, depth)}
    assert sum(expected.values()) == 1
    samples = [interleave("abc", second, key=("test", str(seed)), method="probabilistic") for seed in range(20_000)]
    counts = Counter(mixed.documents for mixed in samples)
    squares = [(counts[mixed] - 20_000 * float(p)) ** 2 / (20_000 * float(p)) for mixed, p in expected.items()]
    assert sum(squares) < len(expected) + 4 * (2 * len(expected)) ** 0.5 + 4  # chi-squared: mean and four deviations
    assert set(counts) <= set(expected)
    for mixed in samples[:200]:
        product = 1.0
        for chance in mixed.propensities:
            product *= chance
        assert product == pytest.approx(float(expected[mixed.documents]), rel=1e-12)


@pytest.mark.parametrize("second", ["bca", "xya", "xyz", "b"])
def test_no_rank_is_preferred_in_probabilistic_lists(second: str) -> None:
    depth = min(3, len(second))
    credit = [Fraction(0)] * depth
    for _, chance, shares in drawn_lists("abc"[: len(second)], second, depth):
        credit = [total + chance * (2 * share - 1) for total, share in zip(credit, shares, strict=True)]
    assert credit == [0] * depth


@pytest.mark.parametrize("method", METHODS)
def test_the_same_key_gives_the_same_list(method: str) -> None:
    first, second = [f"d{i}" for i in range(12)], [f"d{i}" for i in range(11, 3, -1)]
    keys = [("ranking", f"u{i}", "sofa") for i in range(40)]
    lists, repeated = ([interleave(first, second, key=key, method=method) for key in keys] for _ in range(2))
    assert lists == repeated
    assert len({mixed.documents for mixed in lists}) > 1


def test_bytes_of_a_seed() -> None:
    """Written down once: another version of Python or of this file must not mix running tests anew."""
    lists = {
        method: "".join(interleave("abcdef", "fbdxya", key=("ranking", "u7", "sofa"), method=method).documents)
        for method in METHODS
    }
    assert lists == {"team-draft": "fabdcx", "balanced": "fabdcx", "probabilistic": "bfaecd"}


def test_the_file_needs_nothing_but_python(tmp_path: Path) -> None:
    copy = tmp_path / "mixing.py"
    copy.write_text(Path(judged.online.mixed_lists.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    program = (
        "import sys, mixing; mixing.interleave('ab', 'ba', key='k');"
        "print(sorted({'numpy', 'judged', 'pyarrow'} & {name.partition('.')[0] for name in sys.modules}))"
    )
    process = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "options", [{"method": "optimized"}, {"length": "both"}, {"size": 0}, {"names": ("A", "A")}, {"first": "aa"}]
)
def test_what_makes_no_sense_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"unique documents|expected a method"):
        interleave(**{"first": "ab", "second": "ba", "key": "k", **options})  # type: ignore[arg-type]
