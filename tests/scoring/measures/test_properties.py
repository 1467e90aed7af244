"""Invariants of all registered measures: page, name, and declared properties."""

from __future__ import annotations

import copy
import importlib
import inspect
import math
import pickle
import pkgutil
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import judged
import judged.scoring.measures
from families import NEEDED, ORACLE, SETS, VALUES, lookup
from judged import InputError, MeasureError
from judged.scoring.judging import judge_list
from judged.scoring.measures import Measure, Properties, measure, parse, parse_many
from judged.scoring.measures.base import AnswerMeasure, TrajectoryMeasure
from judged.scoring.measures.gain import discounts
from judged.scoring.measures.pages import FAMILIES, catalog, page
from judged.scoring.measures.registry import REGISTRY
from strategies import Qrels, Run, collections, facts, ranked, untied, without_ties
from variants import ALL, OF_RANKINGS, SCORED, default, judge, listed, shares, some

LEVELS = (0.0, 5e-324, 1.0, 1.5, 2.0)
"""The levels of relevance among the variants; any grade above 0 is relevant to graded measures."""

each = pytest.mark.parametrize("name", list(REGISTRY))


def with_property(**values: Any) -> list[Measure]:
    return [
        measure for measure in SCORED if all(getattr(measure.properties, key) == value for key, value in values.items())
    ]


# --- an oracle value each ---------------------------------------------------------------------------


def test_every_measure_has_an_oracle_value() -> None:
    assert set(ORACLE) == set(REGISTRY)


@each
def test_the_oracle_value(name: str) -> None:
    written, grades, missing, value, _, *more = ORACLE[name]
    variant = parse(written)
    assert variant.entry.name == name
    if isinstance(variant, AnswerMeasure):
        assert variant.of_answer(**grades) == pytest.approx(value, rel=1e-15, abs=0)
        return
    if isinstance(variant, TrajectoryMeasure):
        assert variant.of_trial(**grades) == pytest.approx(value, rel=1e-15, abs=0)
        return
    assert variant.of_list(grades, missing=missing, **(more[0] if more else {})) == pytest.approx(
        value, rel=1e-15, abs=0
    )


# --- definition -------------------------------------------------------------------------------------


@each
def test_the_definition_is_complete(name: str) -> None:
    entry = REGISTRY[name]
    text = inspect.getdoc(entry.cls) or ""
    assert text.splitlines()[0].endswith(".")
    assert entry.name == name
    assert entry.family in FAMILIES
    assert ".. math::" in text or entry.family == "count"
    assert "Examples\n--------" in text
    assert ">>> " in text.partition("Examples\n")[2]
    for sentence in (entry.use, entry.misleads):
        assert len(sentence) > 15
        assert sentence[0].isupper() or sentence.startswith("trec_eval")
        assert sentence.endswith(".")
    assert entry.cite
    assert not entry.cite.endswith(".")
    for parameter in entry.all_parameters:
        assert parameter.meaning.endswith("."), parameter.name
        assert parameter.allowed, parameter.name
    assert name in catalog()


@each
def test_the_page_shows_it_all(name: str) -> None:
    text, entry = page(name), REGISTRY[name]
    for part in ("## Parameters" if entry.all_parameters else "It has no parameters.", entry.use, entry.misleads):
        assert part in text
    for parameter in entry.all_parameters:
        assert f"`{parameter.name}`" in text
    assert text.count("$$") == 2 * (inspect.getdoc(entry.cls) or "").count(".. math::")
    assert ".. math::" not in text
    assert f"Source: {entry.cite}." in text


def test_every_module_of_measures_is_imported_and_every_measure_exported() -> None:
    for module in pkgutil.iter_modules(judged.measures.__path__):
        importlib.import_module(f"judged.scoring.measures.{module.name}")
    assert {entry.cls.__module__.partition("judged.scoring.measures.")[0] for entry in REGISTRY.values()} == {""}
    assert len(REGISTRY) == len(ORACLE)  # importing the modules one by one has registered nothing new
    for entry in REGISTRY.values():
        assert getattr(judged.measures, entry.cls.__name__) is entry.cls
        assert entry.cls.__name__ in judged.measures.__all__


def test_no_two_measures_share_a_name() -> None:
    names = [name.lower() for entry in REGISTRY.values() for name in {entry.name, *entry.aliases}]
    assert len(names) == len(set(names))
    with pytest.raises(MeasureError, match="two measures are called AP"):
        measure(category="set", cite="x", use="x", misleads="x", name="AP")(type("Again", (Measure,), {}))


@each
def test_every_alias_is_understood(name: str) -> None:
    entry = REGISTRY[name]
    required = {p.name: lookup(NEEDED, name, p.name) for p in entry.all_parameters if p.required}
    cutoff = f"@{required.pop('cutoff')}" if "cutoff" in required else ""
    inside = f"({','.join(f'{key}={value}' for key, value in required.items())})" if required else ""
    for alias, values in {**entry.aliases, name: {}}.items():
        for written in (alias, alias.lower(), alias.upper()):
            assert parse(f"{written}{inside}{cutoff}") == default(name).replace(**values), written


# --- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ALL, ids=str)
def test_a_name_is_read_back(variant: Measure) -> None:
    for again in (parse(str(variant)), pickle.loads(pickle.dumps(variant)), copy.deepcopy(variant), variant.replace()):  # noqa: S301 - our own
        assert again == variant
        assert hash(again) == hash(variant)
        assert str(again) == str(variant)
    assert repr(variant) == str(variant)
    assert variant != str(variant)


def test_all_variants_have_names_of_their_own() -> None:
    assert len({str(variant) for variant in ALL}) == len(ALL)
    assert len(set(ALL)) == len(ALL)


@each
@settings(max_examples=40)  # of each measure: what many share, as cutoffs, is drawn thousands of times
@given(data=st.data())
def test_any_parameters_are_read_back(name: str, data: st.DataObject) -> None:
    entry = REGISTRY[name]
    given_values = {
        p.name: data.draw(lookup(VALUES, name, p.name), label=p.name)
        for p in entry.all_parameters
        if p.required or data.draw(st.booleans(), label=f"with {p.name}")
    }
    variant = create_measure(entry.cls, given_values)
    again = parse(str(variant))
    assert again == variant
    assert hash(again) == hash(variant)
    for parameter in entry.all_parameters:
        value, parsed_value = getattr(variant, parameter.name), getattr(again, parameter.name)
        assert value == parsed_value or (math.isnan(value) and math.isnan(parsed_value))
        assert type(value) is type(parsed_value)


def create_measure(cls: type[Measure], values: dict[str, Any]) -> Measure:
    """Create the measure. If parameters contradict each other, omit optional ones."""
    try:
        return cls(**values)
    except MeasureError as error:
        if "is not allowed" in str(error):  # each by itself must be accepted
            raise
        optional = [p.name for p in cls.entry.all_parameters if p.name in values and not p.required]
        return create_measure(cls, {name: value for name, value in values.items() if name != optional[0]})


def test_equal_parameters_are_equal_measures() -> None:
    assert judged.nDCG(cutoff=10) == judged.nDCG @ 10 == judged.nDCG() @ 10 == parse("nDCG@10")
    assert judged.AP(rel=2) == judged.AP(rel=2.0) == judged.AP(rel="2")  # type: ignore[arg-type]
    assert judged.AP(rel=2) != judged.AP(rel=2.5)
    assert judged.nDCG(undefined="skip") == judged.nDCG(undefined=math.nan)  # type: ignore[arg-type]
    assert len({judged.nDCG(undefined="skip"), judged.nDCG(undefined=math.nan)}) == 1  # type: ignore[arg-type]
    assert judged.nDCG(gain={2: 3, 1: 1}) == judged.nDCG(gain=((1.0, 1.0), (2.0, 3.0)))  # type: ignore[arg-type]
    assert judged.P(cutoff=5) != judged.R(cutoff=5)


def test_a_measure_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        judged.AP().rel = 2  # type: ignore[misc]


# --- declared properties ----------------------------------------------------------------------------


@settings(max_examples=75)
@given(collections(), shares)
def test_scores_stay_in_the_declared_range(pair: tuple[Qrels, Run], share: int) -> None:
    judged_list = judge(*pair)
    for variant in some(SCORED, share):
        properties = variant.properties
        scores = variant(judged_list)
        assert scores.shape == (len(judged_list),)
        assert scores.dtype == np.float64
        assert np.isfinite(scores).all(), variant
        if properties.low is not None:
            assert (scores >= properties.low).all(), (variant, scores)
        if properties.high is not None:
            assert (scores <= properties.high + 1e-15).all(), (variant, scores)


@settings(max_examples=50)
@given(collections(), shares)
def test_a_topic_without_relevant_documents_scores_what_undefined_says(pair: tuple[Qrels, Run], share: int) -> None:
    judged_list = judge(*pair)
    for variant in some(ALL, share):
        if not hasattr(variant, "undefined"):
            continue
        if (
            getattr(variant, "target", "relevant") != "relevant"
        ):  # AWRF: the target of another kind is there in every topic
            assert variant.is_defined(judged_list).all(), variant
            continue
        plain, defined = variant.replace(undefined=0)(judged_list), variant.is_defined(judged_list)
        assert not plain[~defined].any(), variant
        for value in (1.0, -1.0):
            assert variant.replace(undefined=value)(judged_list).tolist() == np.where(defined, plain, value).tolist()
        skipped = variant.replace(undefined="skip")(judged_list)
        assert np.isnan(skipped).tolist() == (~defined).tolist()
        assert skipped[defined].tolist() == plain[defined].tolist()
        relevant = judged_list.sum_labels(judged_list.relevant_labels(getattr(variant, "rel", 5e-324)))
        if type(variant).is_defined is Measure.is_defined or (
            variant.entry.name == "nDCG" and "gain" not in str(variant)
        ):
            assert defined.tolist() == (relevant > 0).tolist(), variant


@settings(max_examples=50)
@given(collections(), st.integers(1, 4), shares)
def test_unjudged_documents_at_the_end(pair: tuple[Qrels, Run], count: int, share: int) -> None:
    qrels, run = pair
    longer = {
        topic: without_ties(docs) | {f"new{number}": -100.0 - number for number in range(count)}
        for topic, docs in run.items()
    }
    before, after = judge(qrels, run), judge(qrels, longer)
    for variant in some(SCORED, share):
        if variant.properties.ignores_unjudged_tail:
            assert variant(after).tolist() == variant(before).tolist(), variant


def test_measures_that_see_an_unjudged_tail_do_see_it() -> None:
    lists: list[tuple[list[Any], list[int]]] = [([1, None, 0], []), ([1, 0], [1, 1, 1]), ([0, 1], [])]
    for name in OF_RANKINGS:
        if not REGISTRY[name].properties.ignores_unjudged_tail:
            variant = default(name)
            changes = [
                variant(listed(grades, missing))[0] != variant(listed([*grades, None, None], missing))[0]
                for grades, missing in lists
            ]
            assert any(changes), variant


@settings(max_examples=50)
@given(untied(), st.randoms(use_true_random=False), shares)
def test_measures_of_a_set_do_not_see_the_order(pair: tuple[Qrels, Run], chance: random.Random, share: int) -> None:
    qrels, run = pair
    mixed = {topic: dict(zip(chance.sample(list(docs), len(docs)), docs.values(), strict=True))
             for topic, docs in run.items()}  # fmt: skip
    before, after = judge(qrels, run), judge(qrels, mixed)
    for variant in some(with_property(needs_ranking=False), share):
        if getattr(variant, "cutoff", None) is None:
            assert variant(before).tolist() == variant(after).tolist(), variant


def test_measures_of_a_ranking_do_see_the_order() -> None:
    before, after = listed([1, 3, 0, None, None, None]), listed([None, None, None, 0, 3, 1])
    for name in OF_RANKINGS:
        if REGISTRY[name].properties.needs_ranking:
            variant = default(name)
            variant = variant.replace(cutoff=2) if hasattr(variant, "cutoff") else variant
            if name in {"Bpref", "GMBpref"}:
                assert variant(judge_list([1, 0]))[0] != variant(judge_list([0, 1]))[0]
            else:
                assert variant(before)[0] != variant(after)[0], variant


@pytest.mark.parametrize("name", SETS)
def test_a_set_without_scores_has_set_measures(name: str) -> None:
    rows = {"query_id": ["q", "q", "q"], "doc_id": ["a", "b", "c"]}
    import pyarrow as pa

    judged_list = judge({"q": {"a": 1, "z": 1, "c": 0}}, pa.table(rows))
    assert default(name)(judged_list)[0] == pytest.approx(SETS[name], rel=1e-15)
    assert not default(name).entry.properties.needs_ranking


@pytest.mark.parametrize("variant", [variant for variant in ALL if variant.properties.needs_ranking], ids=str)
def test_a_set_without_scores_has_no_ranking(variant: Measure) -> None:
    import pyarrow as pa

    judged_list = judge({"q": {"a": 1}}, pa.table({"query_id": ["q"], "doc_id": ["a"]}))
    with pytest.raises(MeasureError, match=r"requires a ranking, but the run run has no scores\. Fix: add scores"):
        variant(judged_list)


def test_a_cutoff_needs_a_ranking_even_where_the_measure_does_not() -> None:
    import pyarrow as pa

    judged_list = judge({"q": {"a": 1}}, pa.table({"query_id": ["q"], "doc_id": ["a"]}))
    with pytest.raises(MeasureError, match=r"Accuracy\(n=10\)@1 requires a ranking"):
        judged.measures.Accuracy(n=10, cutoff=1)(judged_list)


@settings(max_examples=50)
@given(collections(), shares)
def test_binary_measures_do_not_see_how_relevant_a_document_is(pair: tuple[Qrels, Run], share: int) -> None:
    qrels, run = pair
    before = judge(qrels, run)
    for rel in LEVELS:
        higher = {t: {d: g + 7 if g >= rel and g >= 0 else g for d, g in docs.items()} for t, docs in qrels.items()}
        after = judge(higher, run)
        for variant in some(with_property(graded=False), share):
            if getattr(variant, "rel", 1.0) == rel:
                assert variant(after).tolist() == variant(before).tolist(), variant


def test_graded_measures_do_see_how_relevant_a_document_is() -> None:
    before, after = listed([1, 1, 2]), listed([2, 1, 2])
    for name in OF_RANKINGS:
        if REGISTRY[name].properties.graded:
            assert default(name)(before)[0] < default(name)(after)[0], name


@settings(max_examples=75)
@given(untied(), st.randoms(use_true_random=False), shares)
def test_a_better_document_never_lowers_a_monotone_binary_measure(
    pair: tuple[Qrels, Run], chance: random.Random, share: int
) -> None:
    """A returned document that was not relevant becomes relevant, and a missing one ceases to be: R stays."""
    qrels, run = pair
    topic = chance.choice(sorted(set(qrels) & set(run)))
    doc = chance.choice(sorted(run[topic]) or ["new"])
    run = {**run, topic: run[topic] or {doc: 0.0}}
    before = {**qrels, topic: {**qrels[topic], doc: 0.0, "missing": 3.0}}
    after = {**qrels, topic: {**qrels[topic], doc: 3.0, "missing": 0.0}}
    original, improved = judge(before, run), judge(after, run)
    for variant in some(with_property(graded=False, monotone=True), share):
        if getattr(variant, "rel", 1.0) == 0:
            continue  # nothing changes sides
        assert (variant(improved) >= variant(original) - 1e-15).all(), variant


@settings(max_examples=75)
@given(untied(), st.randoms(use_true_random=False), shares)
def test_a_higher_grade_never_lowers_a_monotone_graded_measure(
    pair: tuple[Qrels, Run], chance: random.Random, share: int
) -> None:
    qrels, run = pair
    topic = chance.choice(sorted(set(qrels) & set(run)))
    doc = chance.choice(sorted(qrels[topic]))
    assume(qrels[topic][doc] < 4)
    raised = {**qrels, topic: {**qrels[topic], doc: 4.0}}
    original, improved = judge(qrels, run), judge(raised, run)
    for variant in some(with_property(graded=True, monotone=True), share):
        if isinstance(getattr(variant, "gain", ""), str):
            assert (variant(improved) >= variant(original) - 1e-12).all(), variant


def test_precision_over_what_was_found_can_fall_when_more_is_found() -> None:
    """AP(norm=returned) is not a monotone number, whatever its class declares: 1, then (1 + 2/3) / 2."""
    assert judged.AP(norm="returned").of_list([1, 0, 0], missing=[1]) == 1.0
    assert judged.AP(norm="returned").of_list([1, 0, 1], missing=[0]) == (1 + 2 / 3) / 2


def test_what_is_not_declared_monotone_is_not() -> None:
    """A higher grade raises the ideal of nDCG more than its gain: [1, 2] against [1, 3]."""
    assert judged.nDCG().of_list([1, 2]) > judged.nDCG().of_list([1, 3])
    assert {"nDCG", "Judged", "Unjudged"} <= {name for name in REGISTRY if not REGISTRY[name].properties.monotone}


@settings(max_examples=50)
@given(collections(), shares)
def test_a_perfect_run_scores_what_is_declared(pair: tuple[Qrels, Run], share: int) -> None:
    """A run of all relevant documents, best first."""
    qrels, _ = pair
    for rel in LEVELS:
        run = {topic: {doc: grade for doc, grade in docs.items() if grade >= rel} for topic, docs in qrels.items()}
        judged_list = judge(qrels, run)
        relevant = np.array([len(run[topic]) for topic in judged_list.query_ids])
        for variant in some(SCORED, share):
            properties, perfect = variant.properties, variant.properties.perfect
            level = getattr(variant, "rel", 5e-324 if properties.graded else 1.0)
            if perfect is None or level != rel:
                continue
            if any(isinstance(getattr(variant, table, ""), tuple) for table in ("gain", "g")):
                continue  # a table may give some relevant documents nothing
            expected = [perfect] * int((relevant > 0).sum())
            assert variant(judged_list)[relevant > 0].tolist() == pytest.approx(expected, rel=1e-14), variant


# --- invariances ------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(untied(), st.randoms(use_true_random=False), shares)
def test_the_names_of_documents_do_not_matter(pair: tuple[Qrels, Run], chance: random.Random, share: int) -> None:
    qrels, run = pair
    docs = sorted({doc for tables in (qrels, run) for table in tables.values() for doc in table})
    new_names = dict(zip(docs, chance.sample([f"n{number}" for number in range(len(docs))], len(docs)), strict=True))
    renamed = [{t: {new_names[doc]: v for doc, v in table.items()} for t, table in tables.items()} for tables in pair]
    documents = facts(qrels, run)
    before, after = (
        judge(qrels, run, documents=documents),
        judge(*renamed, documents={new_names.get(doc, doc + "?"): fact for doc, fact in documents.items()}),
    )
    for variant in some(ALL, share):
        assert np.array_equal(variant(before), variant(after), equal_nan=True), variant


@settings(max_examples=50)
@given(collections(score=st.sampled_from([-3.0, -0.5, 0.0, 0.25, 1.0, 4.0])), shares)
def test_the_scale_of_scores_does_not_matter(pair: tuple[Qrels, Run], share: int) -> None:
    qrels, run = pair
    scaled = {topic: {doc: math.exp(score) * 1e-9 + 5 for doc, score in docs.items()} for topic, docs in run.items()}
    before, after = judge(qrels, run), judge(qrels, scaled)
    for variant in some(ALL, share):
        assert np.array_equal(variant(before), variant(after), equal_nan=True), variant


@settings(max_examples=50)
@given(collections(), st.randoms(use_true_random=False), shares)
def test_topics_may_be_scored_in_parts(pair: tuple[Qrels, Run], chance: random.Random, share: int) -> None:
    qrels, run = pair
    half = {topic for topic in qrels if chance.random() < 0.5}
    assume(0 < len(half) < len(qrels))
    parts = [
        judge({t: d for t, d in qrels.items() if (t in half) is inside}, {t: d for t, d in run.items() if t in qrels})
        for inside in (True, False)
    ]
    all_topics = judge(qrels, run)
    for variant in some(ALL, share):
        if not variant.properties.topics_independent:
            continue
        by_topic: dict[str, float] = {}
        for part in parts:
            by_topic |= dict(zip(part.query_ids, variant(part).tolist(), strict=True))
        assert [by_topic[topic] for topic in all_topics.query_ids] == pytest.approx(
            variant(all_topics).tolist(), rel=0, nan_ok=True
        )


@settings(max_examples=50)
@given(collections(), collections(), shares)
def test_runs_may_be_scored_apart(pair: tuple[Qrels, Run], other: tuple[Qrels, Run], share: int) -> None:
    qrels, first = pair
    second = {**other[1], next(iter(qrels)): {"a": 1.0}}
    names = [str(variant) for variant in some(ALL, share)]
    with quiet():
        documents = facts(qrels, first, second)
        joint = judged.evaluate(qrels, {"one": first, "two": second}, names, documents=documents)
        separate = [judged.evaluate(qrels, run, names, documents=documents) for run in (first, second)]
    for row, scores in enumerate(separate):
        assert np.array_equal(joint.values[row], scores.values[0], equal_nan=True)


def quiet() -> Any:
    import warnings

    context = warnings.catch_warnings()
    warnings.simplefilter("ignore", judged.JudgedWarning)
    return context


@settings(max_examples=50)
@given(collections(), shares)
def test_a_large_cutoff_is_no_cutoff(pair: tuple[Qrels, Run], share: int) -> None:
    judged_list = judge(*pair)
    compared = 0
    for variant in some(ALL, share):
        cutoff = variant.entry.cutoff
        if cutoff is None or cutoff.required or (variant.entry.name == "Unjudged"):
            continue
        compared += 1
        assert np.array_equal(
            variant.replace(cutoff=None)(judged_list), variant.replace(cutoff=1000)(judged_list), equal_nan=True
        ), variant
    assert compared > 5
    for ranked_one, set_one in (("R@1000", "SetR"), ("R(rel=2)@1000", "SetR(rel=2)")):
        assert parse(ranked_one)(judged_list).tolist() == parse(set_one)(judged_list).tolist()


@settings(max_examples=50)
@given(collections(), shares)
def test_judged_only_is_the_run_without_unjudged_documents(pair: tuple[Qrels, Run], share: int) -> None:
    qrels, run = pair
    judged_run = {
        topic: {doc: score for doc, score in docs.items() if qrels.get(topic, {}).get(doc, -1) >= 0}
        for topic, docs in run.items()
    }
    original, without_unjudged = judge(qrels, run), judge(qrels, judged_run)
    compared = 0
    for variant in some(ALL, share):
        if hasattr(variant, "judged_only"):
            compared += 1
            condensed, plain = variant.replace(judged_only=True), variant.replace(judged_only=False)
            assert np.array_equal(condensed(original), plain(without_unjudged), equal_nan=True), variant
    assert compared > 5


@settings(max_examples=50)
@given(collections(), st.integers(1, 5), shares)
def test_depth_is_a_cutoff_for_measures_that_take_one(pair: tuple[Qrels, Run], depth: int, share: int) -> None:
    full, shortened = judge(*pair), judge(*pair, depth=depth)
    for variant in some(ALL, share):
        moves = variant.entry.name == "BPMD"  # its cutoff is a budget, which moves with what is found
        if hasattr(variant, "cutoff") and not getattr(variant, "judged_only", False) and not moves:
            at_depth = variant.replace(cutoff=depth)
            assert np.array_equal(at_depth(full), at_depth(shortened), equal_nan=True), variant


# --- graded measures against the plainest reference ---------------------------------------------------

GAINS: dict[str, Any] = {
    "linear": lambda grade: max(grade, 0.0),
    "exp2": lambda grade: 2.0**grade - 1 if grade > 0 else 0.0,
}
DISCOUNTS = {
    "log2": lambda rank, _: math.log2(rank + 1),
    "ln": lambda rank, _: math.log(rank + 1),
    "log10": lambda rank, _: math.log10(rank + 1),
    "original": lambda rank, base: max(1.0, math.log(rank) / math.log(base)),
}
tables = st.dictionaries(
    st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0]),
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 9.0]),
    min_size=1,
)


@given(
    untied(),
    st.sampled_from(["linear", "exp2"]) | tables,
    st.sampled_from(list(DISCOUNTS)),
    st.sampled_from([2.0, 3.0]),
    st.none() | st.integers(1, 6),
)
def test_discounted_gain_is_the_sum_that_the_formula_says(
    pair: tuple[Qrels, Run], gain: Any, discount: str, base: float, cutoff: int | None
) -> None:
    qrels, run = pair
    judged_list = judge(qrels, run)

    def gain_of(grade: float | None) -> float:
        if grade is None:
            return 0.0
        return GAINS[gain](grade) if isinstance(gain, str) else gain.get(grade, max(grade, 0.0))

    def dcg(gains: list[float]) -> float:
        return sum(g / DISCOUNTS[discount](rank, base) for rank, g in enumerate(gains[:cutoff], 1))

    base = base if discount == "original" else 2.0  # no other discount has one
    discounted = {"cutoff": cutoff, "gain": gain, "discount": discount, "base": base}
    measures = [judged.measures.CG(cutoff=cutoff, gain=gain), judged.DCG(**discounted), judged.nDCG(**discounted)]
    for topic_index, topic in enumerate(judged_list.query_ids):
        gains = [gain_of(qrels[topic].get(doc)) for doc in ranked(run.get(topic, {}))]
        ideal = dcg(sorted(map(gain_of, qrels[topic].values()), reverse=True))
        expected = [sum(gains[:cutoff]), dcg(gains), dcg(gains) / ideal if ideal else 0.0]
        assert [variant(judged_list)[topic_index] for variant in measures] == pytest.approx(expected, rel=1e-13)


def test_a_table_of_gains_is_read_once() -> None:
    """Grade 1 gains 2, which is not the grade 2 that gains 5; and less grade may gain more."""
    assert judged.measures.CG(gain={1: 2, 2: 5}).of_list([1, 2, 1]) == 2 + 5 + 2
    assert judged.measures.CG(gain={-1: 1, 0: 4, 1: 0}).of_list([-1, 0, 1, -2, None]) == 1 + 4 + 0
    assert judged.nDCG(gain={1: 5, 2: 1}, cutoff=1).of_list([2, 1]) == 1 / 5


def test_discounts_are_the_c_librarys_to_the_last_bit() -> None:
    ranks = np.arange(1, 100_000)
    assert discounts(ranks, "log2", 2.0).tolist() == [math.log2(rank + 1) for rank in range(1, 100_000)]
    assert discounts(ranks, "ln", 2.0).tolist() == [math.log(rank + 1) for rank in range(1, 100_000)]
    assert discounts(ranks, "log10", 2.0).tolist() == [math.log10(rank + 1) for rank in range(1, 100_000)]


# --- what a measure of one's own may be --------------------------------------------------------------


def test_a_measure_of_ones_own_need_not_be_registered() -> None:
    judged_list = judge({"q": {"a": 2, "b": 1}}, {"q": {"x": 3.0, "a": 2.0, "b": 1.0}})
    assert judged_list.sum(judged_list.grade / judged_list.rank).tolist() == [2 / 2 + 1 / 3]


def test_properties_have_defaults_of_a_share() -> None:
    assert (Properties().low, Properties().high, Properties().perfect) == (0.0, 1.0, None)


@pytest.mark.parametrize("grade", [1001.0, 5000.0])
def test_a_gain_that_no_number_can_hold_is_refused(grade: float) -> None:
    with pytest.raises(MeasureError, match=rf"gain=exp2 cannot represent the grade {grade:g}.*Fix: use gain=linear"):
        parse("nDCG(gain=exp2)").of_list([grade, 1])
    assert parse("nDCG").of_list([grade, 1]) == 1.0


def test_a_list_without_judgments_is_refused() -> None:
    with pytest.raises(InputError, match="at least one grade is required"):
        parse("AP").of_list([None])


def test_a_series_gives_each_measure() -> None:
    assert parse_many("P@1,2") == (parse("P@1"), parse("P@2"))
    assert ranked({"a": 1.0, "b": 1.0}) == ["b", "a"]
