"""Measures of subtopics compared with pyndeval, with a plain implementation of ndeval, and by hand."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judged
from judged import InputError, Judged, Qrels, judge
from judged.scoring.measures import parse
from judged.scoring.measures.diversity import greedy_ideal, subtopic_counts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Row = tuple[str, str, str, float]  # topic, subtopic, document, grade

NAMES = [
    *(f"{name}@{k}" for name in ("ERR-IA", "nERR-IA", "alpha-DCG", "alpha-nDCG") for k in (1, 2, 3, 5, 10, 20)),
    *(f"{name}@{k}" for name in ("P-IA", "strec") for k in (1, 2, 3, 5, 10, 20)),
    *("NRBP", "nNRBP", "MAP-IA"),
]


def qrels_of(rows: Iterable[Row]) -> Qrels:
    query, iteration, doc, grade = zip(*rows, strict=True)
    columns = {"query_id": query, "iteration": iteration, "doc_id": doc, "relevance": [float(value) for value in grade]}
    return Qrels(pa.table(columns))


def with_parameters(name: str, **values: float) -> judged.measures.Measure:
    measure = parse(name)
    names = {parameter.name for parameter in measure.entry.all_parameters}
    return measure.replace(**{key: value for key, value in values.items() if key in names})


# --- stored doubles -----------------------------------------------------------------------------------

GRADES: dict[str, dict[str, tuple[str, str]]] = {
    # topic: subtopic: documents of grade 1, then of grade 0
    "1": {"0": ("abc", "d"), "1": ("ce", "a"), "2": ("fg", "b")},
    "2": {"1": ("pq", "r"), "10": ("", "p"), "2": ("r", "q")},  # nothing is relevant to 10
    "3": {"1": ("", "z")},  # nor to anything here
    "4": {"1": ("a", ""), "2": ("az", ""), "3": ("bz", ""), "4": ("b", "")},  # of equals the ideal takes z first
}
RANKED = {"1": "xfaedcb", "2": "rxqp", "3": "zy", "4": "abz"}
# pyndeval 0.0.8, one number a topic, with its defaults alpha = 0.5 and beta = 0.5
DEFAULTS: dict[str, tuple[float, ...]] = {
    "ERR-IA@2": (0.13333333333333333, 0.4, 0.0, 0.6),
    "ERR-IA@10": (0.30918565901008704, 0.5260450448435509, 0.0, 0.6011943369640582),
    "nERR-IA@3": (0.3125, 0.7999999999999998, 0.0, 1.0256410256410258),
    "nERR-IA@20": (0.4383116883116884, 0.8749999999999998, 0.0, 1.0256410256410258),
    "alpha-DCG@2": (0.1598749777120876, 0.3800937667159343, 0.0, 0.6199062332840657),
    "alpha-DCG@10": (0.43342374762562696, 0.5572817047393087, 0.0, 0.611079314427615),
    "alpha-nDCG@3": (0.3925572125351047, 0.7974779478881874, 0.0, 1.017710467450658),
    "alpha-nDCG@20": (0.5922749724556678, 0.9119629671334932, 0.0, 1.017710467450658),
    "P-IA@5": (0.2, 0.3, 0.0, 0.3),
    "strec@2": (0.3333333333333333, 0.5, 0.0, 1.0),
    "NRBP": (0.2275390625, 0.4921875, 0.0, 0.609375),
    "nNRBP": (0.333810888252149, 0.8076923076923077, math.nan, 1.04),
    "MAP-IA": (0.3022486772486772, 0.7083333333333333, 0.0, 0.7291666666666666),
}
# and with alpha = 0.3, beta = 0.8
OTHERS: dict[str, tuple[float, ...]] = {
    "ERR-IA@2": (0.1234567901234568, 0.37037037037037035, 0.0, 0.5555555555555555),
    "ERR-IA@10": (0.26988604659674675, 0.44034892819120636, 0.0, 0.5060363373689002),
    "nERR-IA@3": (0.30487804878048774, 0.769230769230769, 0.0, 1.0146341463414634),
    "nERR-IA@20": (0.44302449414270506, 0.8701923076923076, 0.0, 1.0146341463414634),
    "alpha-DCG@2": (0.14588131456342507, 0.3468246197084037, 0.0, 0.5656465915535412),
    "alpha-DCG@10": (0.3561216956598489, 0.43276798366426644, 0.0, 0.47587873598729596),
    "alpha-nDCG@3": (0.3793882603964378, 0.75722018779092, 0.0, 1.0100135421719514),
    "alpha-nDCG@20": (0.5965085050835819, 0.9094081137422781, 0.0, 1.0100135421719516),
    "P-IA@5": (0.2, 0.3, 0.0, 0.3),
    "strec@2": (0.3333333333333333, 0.5, 0.0, 1.0),
    "NRBP": (0.37241637546666684, 0.4396480000000001, 0.0, 0.4945600000000001),
    "nNRBP": (0.626393932313211, 0.8889679715302491, math.nan, 1.0107913669064748),
    "MAP-IA": (0.3022486772486772, 0.7083333333333333, 0.0, 0.7291666666666666),
}


def stored() -> Judged:
    rows = [
        (topic, subtopic, doc, grade)
        for topic, subtopics in GRADES.items()
        for subtopic, (relevant, others) in subtopics.items()
        for docs, grade in ((relevant, 1.0), (others, 0.0))
        for doc in docs
    ]
    return judge(
        qrels_of(rows),
        {topic: {doc: -float(position) for position, doc in enumerate(docs)} for topic, docs in RANKED.items()},
    )


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize(("table", "alpha", "beta"), [(DEFAULTS, 0.5, 0.5), (OTHERS, 0.3, 0.8)])
def test_the_doubles_that_pyndeval_prints(
    name: str, table: dict[str, tuple[float, ...]], alpha: float, beta: float
) -> None:
    theirs = [0.0 if math.isnan(value) else value for value in table[name]]  # nan: nothing is relevant
    assert with_parameters(name, alpha=alpha, beta=beta)(stored()).tolist() == theirs


def test_the_greedy_ideal_can_be_beaten() -> None:
    """Topic 4: the ideal takes z, then gains 1.5; the run takes a and b, and gains 2 twice."""
    discount = 1 / math.log2(3)
    score = parse("alpha-nDCG@2")(stored())[3]
    assert score == pytest.approx((2 + 2 * discount) / (2 + 1.5 * discount), rel=1e-15)
    assert score > 1


def test_the_greedy_ideal_itself() -> None:
    ideal = greedy_ideal(stored(), 1.0, 0.5)
    order = [
        [doc for doc, topic in zip(ideal.doc, ideal.topic.tolist(), strict=True) if topic == topic_index]
        for topic_index in range(4)
    ]
    # topic 1: c covers two; g and f, then the greatest of those that gain a half, and so on
    assert order == [["c", "g", "f", "e", "b", "a"], ["r", "q", "p"], [], ["z", "b", "a"]]


# --- pyndeval on generated collections ----------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(10))
def test_every_double_is_that_of_pyndeval(seed: int) -> None:
    """Bit for bit; at k = 1 pyndeval does not divide ERR-IA and alpha-DCG, so that rounding may differ there."""
    pyndeval = pytest.importorskip("pyndeval")
    chance = random.Random(seed)  # noqa: S311 - any numbers will do
    alpha, beta, rel = chance.choice([0.5, 0.3, 0.9, 0.0, 1.0]), chance.choice([0.5, 0.8, 0.99, 0.0]), seed % 2 + 1
    docs = [f"{chance.choice('abZé日')}{number}" for number in range(chance.choice([5, 15, 60]))]
    rows, run = list[Row](), dict[str, dict[str, float]]()
    for topic in (f"t{number}" for number in range(20)):
        subtopics = chance.sample([str(number) for number in range(9)], chance.randint(1, 9))
        grades = chance.choice([[1, 2, 0, 0, -2], [1, 0, 0, 0, 0, 0]])
        rows += [
            (topic, subtopic, doc, chance.choice(grades))
            for subtopic in subtopics
            for doc in docs
            if chance.random() < 0.6
        ]
        returned = chance.sample([*docs, *"xyz"], chance.randint(1, len(docs)))
        run[topic] = {doc: chance.choice([1.0, 2.0, 3.0, 4.0]) for doc in returned}
    rows.sort(key=lambda row: row[1])  # pyndeval numbers subtopics as they come, and adds up in that order
    theirs = pyndeval.RelevanceEvaluator(rows, NAMES, relevance_level=rel, alpha=alpha, beta=beta).evaluate(
        [(topic, doc, score) for topic, scores in run.items() for doc, score in scores.items()]
    )
    ours = judge(qrels_of(rows), run, ties="docid-rising")
    count = dict(zip(ours.query_ids, subtopic_counts(ours, rel).tolist(), strict=True))
    for name in NAMES:
        values = with_parameters(name, alpha=alpha, beta=beta, rel=rel)(ours).tolist()
        for topic, value in zip(ours.query_ids, values, strict=True):
            expected = theirs[topic][name] if count[topic] else 0.0
            if name in {"ERR-IA@1", "alpha-DCG@1"} and count[topic]:
                expected /= count[topic]
            assert value == (pytest.approx(expected, rel=1e-15) if name.endswith("@1") else expected), (name, topic)


# --- the rules, the plain way -------------------------------------------------------------------------

grades_by_subtopic = st.dictionaries(st.sampled_from(["0", "1", "2", "10"]), st.sampled_from([-2, 0, 1, 2]), min_size=1)
many_labels = st.dictionaries(st.sampled_from("abcdefg"), grades_by_subtopic, min_size=1)
rankings = st.lists(st.sampled_from("abcdefgxyz"), unique=True)


def covered(grades: dict[str, float], rel: float) -> set[str]:
    return {subtopic for subtopic, grade in grades.items() if grade >= rel and grade >= 0}


class Plain:
    """One topic, with the subtopics that each document covers."""

    def __init__(self, labels: dict[str, dict[str, float]], ranking: list[str], rel: float, alpha: float) -> None:
        self.alpha = alpha
        self.labels = {doc: covered(grades, rel) for doc, grades in labels.items()}
        self.ranking = [self.labels.get(doc, set()) for doc in ranking]
        self.known = sorted(set().union(*self.labels.values()))

    def gains(self, ranking: list[set[str]]) -> list[float]:
        covered_before = dict.fromkeys(self.known, 0)
        gains: list[float] = []
        for subtopics_of in ranking:
            gains.append(sum((1 - self.alpha) ** covered_before[subtopic] for subtopic in subtopics_of))
            covered_before |= {subtopic: covered_before[subtopic] + 1 for subtopic in subtopics_of}
        return gains

    def ideal(self) -> list[set[str]]:
        remaining, selected = dict(self.labels), list[set[str]]()
        while remaining:
            # adding up in the order of the subtopics, as the kernel does: equal sums must stay equal
            gains = {doc: self._gain(selected, subtopics_of) for doc, subtopics_of in remaining.items()}
            best = max(gains.values())
            selected.append(remaining.pop(max(doc for doc, value in gains.items() if value == best)))
        return selected

    def _gain(self, selected: list[set[str]], subtopics_of: set[str]) -> float:
        total = 0.0
        for subtopic in sorted(subtopics_of):
            gain = 1.0
            for _ in range(sum(subtopic in before for before in selected)):
                gain *= 1 - self.alpha
            total += gain
        return total

    def of(self, name: str, k: int, beta: float) -> float:
        n = len(self.known)
        if not n:
            return 0.0
        run, ideal, possible = self.gains(self.ranking), self.gains(self.ideal()), [
            n * (1 - self.alpha) ** index for index in range(k)
        ]  # fmt: skip
        weigh = {
            "AlphaDCG": lambda values: sum(value / math.log2(index + 2) for index, value in enumerate(values[:k])),
            "ERRIA": lambda values: sum(value / (index + 1) for index, value in enumerate(values[:k])),
            "NRBP": lambda values: sum(value * beta**index for index, value in enumerate(values)),
        }
        if name == "NRBP":
            return weigh[name](run) * (1 - (1 - self.alpha) * beta) / n
        if name in weigh:
            return weigh[name](run) / weigh[name](possible)
        plain = {"AlphanDCG": "AlphaDCG", "nERRIA": "ERRIA", "nNRBP": "NRBP"}
        if name in plain:
            return weigh[plain[name]](run) / weigh[plain[name]](ideal)
        ranks = [
            [rank for rank, subtopics in enumerate(self.ranking, 1) if subtopic in subtopics] for subtopic in self.known
        ]
        relevant = [sum(subtopic in subtopics for subtopics in self.labels.values()) for subtopic in self.known]
        return {
            "APIA": sum(
                sum(i / rank for i, rank in enumerate(subtopic_ranks, 1)) / count
                for subtopic_ranks, count in zip(ranks, relevant, strict=True)
            )
            / n,
            "PIA": sum(rank <= k for subtopic_ranks in ranks for rank in subtopic_ranks) / k / n,
            "StRecall": sum(bool(subtopic_ranks) and subtopic_ranks[0] <= k for subtopic_ranks in ranks) / n,
        }[name]


@settings(max_examples=200)
@given(
    st.dictionaries(st.sampled_from(["9", "10", "é"]), st.tuples(many_labels, rankings), min_size=1),
    st.sampled_from([1.0, 2.0, 0.0]),
    st.sampled_from([0.5, 0.25, 0.0, 1.0]),
    st.sampled_from([0.5, 0.75, 0.0]),
    st.integers(1, 8),
)
def test_all_follow_the_rules_of_ndeval(
    topics: dict[str, tuple[dict[str, dict[str, float]], list[str]]], rel: float, alpha: float, beta: float, k: int
) -> None:
    rows = [(t, s, d, g) for t, (labels, _) in topics.items() for d, by in labels.items() for s, g in by.items()]
    run = {t: {doc: -float(position) for position, doc in enumerate(ranking)} for t, (_, ranking) in topics.items()}
    judged_list = judge(qrels_of(rows), run)
    with_cutoff = [f"{name}@{k}" for name in ("AlphaDCG", "AlphanDCG", "ERRIA", "nERRIA", "PIA", "StRecall")]
    for text in (*with_cutoff, "NRBP", "nNRBP", "APIA"):
        measure, name = with_parameters(text, rel=rel, alpha=alpha, beta=beta), text.partition("@")[0]
        expected = [Plain(*topics[topic], rel, alpha).of(name, k, beta) for topic in judged_list.query_ids]
        assert measure(judged_list).tolist() == pytest.approx(expected, rel=1e-13), measure


# --- where labels come from ---------------------------------------------------------------------------


def test_a_file_keeps_its_subtopics_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "diversity.qrels"
    path.write_text("201 007 a 1\n201 7 a 0\n201 0 a 1\n201 7 b -2\n201 é b 2\n", "utf-8")
    qrels = Qrels.read(path)
    assert qrels.aspects.names == ("0", "007", "7", "é")
    assert qrels.table["iteration"].to_pylist() == ["007", "7", "0", "7", "é"]
    judged_list = judge(qrels, {"201": {"b": 2.0, "a": 1.0}})
    assert judged_list.grade.tolist() == [2.0, 1.0]  # the highest, for measures that know no subtopics
    assert subtopic_counts(judged_list, 1).tolist() == [3]  # 7 has nothing relevant
    assert parse("strec@1")(judged_list).tolist() == [1 / 3]
    assert parse("P-IA@2")(judged_list).tolist() == [3 / (2 * 3)]


def test_subtopics_may_be_numbers_in_a_table() -> None:
    columns = {"query_id": [1, 1], "subtopic": [10, 2], "doc_id": ["a", "a"], "relevance": [1, 1]}
    assert Qrels.of(pa.table(columns)).aspects.names == ("10", "2")


def test_a_subtopic_may_name_a_document_once(tmp_path: Path) -> None:
    path = tmp_path / "twice.qrels"
    path.write_text("1 1 a 1\n1 2 a 1\n1 1 a 0\n", "utf-8")
    with pytest.raises(
        InputError,
        match=r"document a is judged 2 times for topic 1 \(pairs of topic and document with several judgments: 1\)",
    ):
        Qrels.read(path)


def test_qrels_without_subtopics_are_one_subtopic() -> None:
    """alpha-nDCG is then a discounted count of the relevant documents: 1, and a half for the second."""
    judged_list = judge({"q": {"a": 1, "b": 3, "c": 0}}, {"q": {"c": 3.0, "b": 2.0, "a": 1.0}})
    assert parse("alpha-DCG@3")(judged_list)[0] == pytest.approx(
        (1 / math.log2(3) + 0.5 / 2) / (1 + 0.5 / math.log2(3) + 0.25 / 2), rel=1e-15
    )


def test_no_topics_have_no_scores() -> None:
    none = judge({"q": {"a": 1, "b": 0}}, {"r": {"a": 1.0}}).over("both")
    for name in NAMES:
        assert parse(name)(none).tolist() == []


def test_which_topics_are_averaged() -> None:
    """ndeval averages over the topics of both files; with -c over those of the qrels: topics=."""
    rows = [("1", "1", "a", 1.0), ("2", "1", "a", 1.0), ("3", "1", "a", 0.0)]
    run = {"1": {"a": 1.0}, "3": {"a": 1.0}, "4": {"a": 1.0}}
    with pytest.warns(judged.JudgedWarning):
        means = [judged.evaluate(qrels_of(rows), run, "alpha-nDCG@5", topics=policy).value("AlphanDCG@5")
                 for policy in ("both", "qrels")]  # fmt: skip
    assert means == [1 / 2, 1 / 3]


def test_judged_only_leaves_out_what_no_subtopic_judged() -> None:
    rows = [("1", "1", "a", 1.0), ("1", "2", "b", 0.0), ("1", "2", "c", 1.0), ("1", "1", "n", -1.0)]
    judged_list = judge(qrels_of(rows), {"1": {doc: -float(position) for position, doc in enumerate("xnbac")}})
    assert parse("P-IA@3")(judged_list).tolist() == [0.0]
    assert parse("P-IA(judged_only=true)@3")(judged_list).tolist() == [2 / 6]  # b, a, c


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ("\u03b1-nDCG@20", "AlphanDCG@20"),  # a Greek alpha
        ("alpha_nDCG@20", "AlphanDCG@20"),
        ("alpha-DCG(alpha=0.3)@5", "AlphaDCG(alpha=0.3)@5"),
        ("ERR-IA@20", "ERRIA@20"),
        ("nERR_IA(rel=2)@20", "nERRIA(rel=2)@20"),
        ("MAP-IA", "APIA"),
        ("AP_IA", "APIA"),
        ("P-IA@5", "PIA@5"),
        ("strec@5", "StRecall@5"),
        ("S-recall@5", "StRecall@5"),
        ("nrbp", "NRBP"),
    ],
)
def test_names_of_ndeval_and_ir_measures_are_understood(written: str, ours: str) -> None:
    assert str(parse(written)) == ours
