"""Lists are mixed as their sources say, and count for neither ranker where a clicker looks at position only."""

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
    """The source of chance of one list, with coins that were chosen."""

    def __init__(self, coins: int) -> None:
        self.coins = coins

    def getrandbits(self, bits: int) -> int:
        return self.coins & ((1 << bits) - 1)


def every_coin(
    monkeypatch: pytest.MonkeyPatch, first: Sequence[str], second: Sequence[str], **options: str
) -> Iterator[Interleaved]:
    """Give the list of every outcome of the coins: all are as likely."""
    for coins in range(64):
        monkeypatch.setattr(judged.online.mixed_lists.random, "Random", lambda _key, coins=coins: Coins(coins))
        yield interleave(first, second, key="k", **options)  # type: ignore[arg-type]


def sums_by_rank(lists: Iterator[Interleaved]) -> dict[int, int]:
    """Add up what a click at each rank counts: the credit of a clicker who looks at position only."""
    sums: dict[int, int] = defaultdict(int)
    for one in lists:
        for rank, team in enumerate(one.teams):
            sums[rank] += {"A": -1, "B": 1, None: 0}[team]
    return sums


@pytest.mark.parametrize("length", ["shorter", "longer"])
@pytest.mark.parametrize("method", ["team-draft", "balanced"])
def test_no_rank_is_preferred_whatever_the_lists(method: str, length: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [one for many in range(5) for one in permutations("abcx", many)]
    counted = 0
    for second in seconds:
        lists = list(every_coin(monkeypatch, "abcd", second, method=method, length=length))
        assert set(sums_by_rank(iter(lists)).values()) <= {0}, second
        counted += any(team for one in lists for team in one.teams)
    assert counted > 50  # lists that say something at all


@pytest.mark.parametrize("method", ["team-draft", "balanced"])
@pytest.mark.parametrize("many", [10, 5, 2, 1])
def test_ten_results_against_fewer(method: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drafter that goes on to ten prefers the longer list: 79 % of decided lists of 10 against 2, 92 % against 1."""
    first = [f"d{at}" for at in range(10)]
    for second in ([*reversed(first)][:many], [f"x{at}" for at in range(many)], first[1 : many + 1]):
        lists = list(every_coin(monkeypatch, first, second, method=method, length="longer"))
        assert set(sums_by_rank(iter(lists)).values()) == {0}
        assert {team for one in lists for team in one.teams[len(second) :]} <= {None}
        cut = interleave(first, second, key="k", method=method)
        assert len(cut.documents) == len(second)


def test_the_example_by_which_inverse_propensities_are_biased(monkeypatch: pytest.MonkeyPatch) -> None:
    """A = 1, 2, 3 and B = 2, 3, 1: both outcomes have B's 3 at rank 3, which therefore counts for neither."""
    lists = {one.documents: one.teams for one in every_coin(monkeypatch, "123", "231", method="balanced")}
    assert lists == {("1", "2", "3"): ("A", "B", None), ("2", "1", "3"): ("B", "A", None)}


@pytest.mark.parametrize("length", ["shorter", "longer"])
@pytest.mark.parametrize("method", ["team-draft", "balanced"])
def test_the_product_of_propensities_is_the_probability_of_the_list(
    method: str, length: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pairs of lists of up to four documents: 65 second lists, and every outcome of the coins."""
    cases = 0
    for second in (one for many in range(5) for one in permutations("abcx", many)):
        lists = list(every_coin(monkeypatch, "abcd", second, method=method, length=length))
        times = Counter(one.documents for one in lists)
        for one in lists:
            product = Fraction(1)
            for propensity in one.propensities:
                product *= Fraction(propensity)
            assert product == Fraction(times[one.documents], len(lists)), (second, one)
        prefixes = Counter(one.documents[:rank] for one in lists for rank in range(1, len(one.documents) + 1))
        for one in lists:  # each propensity is given the documents above it
            for rank in range(len(one.documents)):
                above = prefixes[one.documents[:rank]] if rank else len(lists)
                assert Fraction(one.propensities[rank]) == Fraction(prefixes[one.documents[: rank + 1]], above)
        cases += len(lists)
    assert cases == 65 * 64


def test_the_propensity_of_a_second_choice_after_a_shared_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A = a, b and B = a, c: both pick a first, and the coin decides whether b or c follows."""
    lists = {one.documents: one.propensities for one in every_coin(monkeypatch, "ab", "ac")}
    assert lists == {("a", "b"): (1.0, 0.5), ("a", "c"): (1.0, 0.5)}


def test_a_draft_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A = a, b, c, d and B = b, e, a, f: whoever picks first takes its best document, then the other one."""
    lists = {one.documents: one for one in every_coin(monkeypatch, "abcd", "beaf")}
    assert {documents: "".join(map(str, one.teams)) for documents, one in lists.items()} == {
        ("a", "b", "c", "e"): "ABAB",
        ("a", "b", "e", "c"): "ABBA",
        ("b", "a", "c", "e"): "BAAB",
        ("b", "a", "e", "c"): "BABA",
    }
    assert all(one.propensities == (0.5, 1.0, 0.5, 1.0) for one in lists.values())
    assert lists["a", "b", "c", "e"].attributes()["interleaving_ranks"] == "1/3 2/1 3/- -/2"


def softmax(documents: Sequence[str], gone: Sequence[str]) -> dict[str, Fraction]:
    weights = {one: Fraction(1, rank ** int(TAU)) for rank, one in enumerate(documents, 1) if one not in gone}
    return {one: weight / sum(weights.values()) for one, weight in weights.items()}


def drawn_lists(
    first: Sequence[str], second: Sequence[str], depth: int, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Fraction, tuple[Fraction, ...]]]:
    """Give every list, its probability, and of each rank the probability that it is B's (Hofmann 2011)."""
    if len(above) == depth:
        yield above, Fraction(1), ()
        return
    one, two = softmax(first, above), softmax(second, above)
    for document in one.keys() | two.keys():
        of_a, of_b = one.get(document, Fraction(0)), two.get(document, Fraction(0))
        for documents, chance, shares in drawn_lists(first, second, depth, (*above, document)):
            yield documents, (of_a + of_b) / 2 * chance, (of_b / (of_a + of_b), *shares)


@pytest.mark.parametrize("second", ["bca", "xya", "b"])
def test_probabilistic_lists_come_as_often_as_they_should(second: str) -> None:
    depth = min(3, len(second))
    expected = {documents: chance for documents, chance, _ in drawn_lists("abc"[: len(second)], second, depth)}
    assert sum(expected.values()) == 1
    made = [interleave("abc", second, key=("test", str(at)), method="probabilistic") for at in range(20_000)]
    came = Counter(one.documents for one in made)
    squares = [(came[one] - 20_000 * float(p)) ** 2 / (20_000 * float(p)) for one, p in expected.items()]
    assert sum(squares) < len(expected) + 4 * (2 * len(expected)) ** 0.5 + 4  # chi-squared: mean and four deviations
    assert set(came) <= set(expected)
    for one in made[:200]:
        product = 1.0
        for chance in one.propensities:
            product *= chance
        assert product == pytest.approx(float(expected[one.documents]), rel=1e-12)


@pytest.mark.parametrize("second", ["bca", "xya", "xyz", "b"])
def test_no_rank_is_preferred_in_probabilistic_lists(second: str) -> None:
    depth = min(3, len(second))
    credit = [Fraction(0)] * depth
    for _, chance, shares in drawn_lists("abc"[: len(second)], second, depth):
        credit = [sum_ + chance * (2 * share - 1) for sum_, share in zip(credit, shares, strict=True)]
    assert credit == [0] * depth


@pytest.mark.parametrize("method", METHODS)
def test_the_same_key_gives_the_same_list(method: str) -> None:
    first, second = [f"d{at}" for at in range(12)], [f"d{at}" for at in range(11, 3, -1)]
    keys = [("ranking", f"u{at}", "sofa") for at in range(40)]
    once, again = ([interleave(first, second, key=key, method=method) for key in keys] for _ in range(2))
    assert once == again
    assert len({one.documents for one in once}) > 1


def test_bytes_of_a_seed() -> None:
    """Written down once: another version of Python or of this file must not mix running tests anew."""
    made = {
        method: "".join(interleave("abcdef", "fbdxya", key=("ranking", "u7", "sofa"), method=method).documents)
        for method in METHODS
    }
    assert made == {"team-draft": "fabdcx", "balanced": "fabdcx", "probabilistic": "bfaecd"}


def test_the_file_needs_nothing_but_python(tmp_path: Path) -> None:
    alone = tmp_path / "mixing.py"
    alone.write_text(Path(judged.online.mixed_lists.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    program = (
        "import sys, mixing; mixing.interleave('ab', 'ba', key='k');"
        "print(sorted({'numpy', 'judged', 'pyarrow'} & {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "wrong", [{"method": "optimized"}, {"length": "both"}, {"size": 0}, {"names": ("A", "A")}, {"first": "aa"}]
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"twice|one of"):
        interleave(**{"first": "ab", "second": "ba", "key": "k", **wrong})  # type: ignore[arg-type]
