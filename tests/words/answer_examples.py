"""One small example of each answer, by name, for tests of all output formats."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import judged
import online_scores_made as made
from judged import history, labels
from judged.comparison.collections import collections_of_scores
from judged.comparison.fusion import choose_weights
from judged.data import sample
from judged.diagnosis.gates import Check, Guardrail
from judged.diagnosis.matrix import class_matrix as matrix_of_classes
from judged.diagnosis.stages.answer import Stages
from judged.interface.plugins import Addition, Plugins
from judged.labels import LabelStore, NewTask, assign_tasks, check_collection, decide, status
from judged.labels.asking import (
    Endpoint,
    ask,
    ask_preferences,
    ask_questions,
    prepare,
    prepare_preferences,
    prepare_questions,
)
from judged.labels.asking.asking import save_reply
from judged.labels.asking.client import Reply
from judged.online import (
    abtest,
    against_qrels,
    check_log,
    clicks,
    difference,
    funnel,
    interleaving,
    overview,
    plan_abtest,
    plan_interleaving,
    preference_agreement,
    queries,
    read_log,
)
from judged.online.clicks import compare_models, fit_model
from judged.online.watch import WatchConfig, watch
from judged.online.watch.config import Event, TableSeries
from judged.pipelines import rag, traces, trajectories
from judged.pipelines.experiments import Plan, TrialEngines, conclude
from judged.pipelines.rag import support_over_time, waterfall
from judged.pipelines.rag.filling import fill, prepare_table
from judged.pipelines.rag.judge_error import calibrate
from judged.pipelines.rag.responses import Responses
from judged.pipelines.traces.recorder import sample_traces
from judged.pipelines.trajectories.evaluation import compare_effort, factor_effects
from judged.reports import changes
from judged.studies import Spreads, check_design, first_design, parse_design, plan_study
from judged.studies import report as report_study
from online.offline.page_logs import log_of
from online.offline.test_against_qrels import PAGES
from online.offline.test_against_qrels import QRELS as RELEVANT
from pipelines.rag.planted_losses import planted
from pipelines.trajectories.agents import simulated
from studies_made import records as study_records
from typed_logs import typed_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.labels.asking.preparation import Prepared
    from judged.online import InteractionLog
    from judged.results import Answer

TOPICS = [f"q{i}" for i in range(1, 13)]
QRELS = {topic: {f"d{doc}": (i * doc) % 4 for doc in range(1, 9)} for i, topic in enumerate(TOPICS, 1)}
RUNS = {
    name: {
        topic: {f"d{doc}": float(-(doc * (i + shift) % 11)) for doc in range(1, 11)} for i, topic in enumerate(TOPICS)
    }
    for shift, name in enumerate(("old", "new", "third"))
}


def scores(*measures: str) -> judged.Scores:
    """Evaluate the runs."""
    return judged.evaluate(QRELS, RUNS, measures or ("nDCG@5", "AP"))


def comparison() -> Answer:
    return scores().compare(test="t", margin=0.1)


def against() -> Answer:
    return scores("AP", "GMAP", "NumRet").compare(baseline="old", test="t")


def collections() -> Answer:
    return collections_of_scores({"news": scores(), "web": scores("AP", "nDCG@5")}, test="t")


def power() -> Answer:
    return scores("AP", "NumRet").power(difference=0.05)


def agreement() -> Answer:
    other = {topic: {doc: min(grade, 1) for doc, grade in docs.items()} for topic, docs in QRELS.items()}
    return judged.agree(QRELS, other, {"q1": {"d1": 1}}, runs=RUNS, measures=("AP", "nDCG@5"))


def reproduction() -> Answer:
    return judged.reproduce(QRELS, RUNS["old"], RUNS["new"], ("AP", "RR"))


def orders() -> Answer:
    return scores().orders()


def tradeoff() -> Answer:
    return scores().tradeoff({"old": {"ms": 3.0}, "new": {"ms": 5.5}, "other": {"ms": 1.0}})


def advice() -> Answer:
    return judged.advise(QRELS, RUNS)


def check() -> Answer:
    return judged.data.check_run(judged.Run.of(RUNS["old"]), judged.Qrels.of(QRELS))


def plain_scores() -> Answer:
    return scores()


def summary() -> Answer:
    evaluation = judged.evaluate(QRELS, RUNS, ("RR", "NumRet"), ties="bounds", unjudged=True)
    return replace(evaluation, queries={"q1": "cats"}).summary(ci="t", per_topic=True)


def gate() -> Answer:
    checks = (Check("nDCG@5", margin=0.05), Check("AP", margin=0.5))
    config = judged.GateConfig(checks, (Guardrail(missing_topics=0),))
    return judged.gate(QRELS, RUNS["old"], RUNS["new"], config)


def diff() -> Answer:
    return judged.diff(QRELS, RUNS["old"], RUNS["new"], ["q1", "q2"], measure=["nDCG@5", "AP"], texts={"d1": "a text"})


def disagreement() -> Answer:
    kinds = judged.slice_topics({topic: {"kind": "ab"[i % 2]} for i, topic in enumerate(TOPICS)}, "kind", min_topics=3)
    return judged.disagree(QRELS, RUNS, ["nDCG@5", "AP"], slicing=kinds, queries={"q1": "cats"})


def needs() -> Answer:
    mapping = {topic: f"n{i // 3}" for i, topic in enumerate(TOPICS)}
    return judged.needs(QRELS, RUNS, mapping, ["nDCG@5", "AP"], queries={"q1": "cats"}, limit=2)


def review() -> Answer:
    return judged.review(QRELS, RUNS, limit=5, slicing=kinds(), texts={"d1": "a text"}, queries={"q1": "cats"})


def stages(**options: Any) -> Stages:
    return judged.stages(QRELS, judged.Run.of(RUNS["new"], name="new"), cutoff=5, resamples=200, **options)


def kinds() -> Any:
    attributes = {topic: {"kind": ("odd", "even", "few")[(i % 2, 2)[i > 9]]} for i, topic in enumerate(TOPICS)}
    return judged.slice_topics(attributes, "kind", min_topics=3)


def stages_against() -> Answer:
    return stages(baseline=judged.Run.of(RUNS["old"], name="old"), slicing=kinds())


def matrix() -> Answer:
    return judged.matrix(QRELS, RUNS, x="R@5", y="nDCG@5", slicing=kinds(), resamples=200)


def matrix_of_many() -> Answer:
    runs = {**RUNS, "fourth": RUNS["old"], "fifth": RUNS["new"]}
    return judged.matrix(QRELS, runs, x="R@5", y="nDCG@5", slicing=kinds(), resamples=200)


def topic() -> Answer:
    return stages().topic("q2", "cats")


def by_slice() -> Answer:
    return scores("nDCG@5", "NumRelRet").by_slice(kinds(), weights={"traffic": range(1, 13)})


def compare_slices() -> Answer:
    return scores("nDCG@5", "GMAP").compare_slices(kinds(), "old", resamples=200, margin=0.5)


def own_measures() -> Any:
    return kinds().with_measures({"odd": "nDCG@5", "even": "R@5"})


def by_class() -> Answer:
    return scores("nDCG@5", "R@5").by_slice(own_measures())


def compare_classes() -> Answer:
    return scores("nDCG@5", "R@5").compare_slices(own_measures(), "old", resamples=200)


def class_matrix() -> Answer:
    return matrix_of_classes(scores("nDCG@5", "R@5", "Judged@10"), own_measures(), x="R@5")


def by_document() -> Answer:
    sources = {f"d{i}": {"source": "web" if i % 3 else "mail"} for i in range(1, 8)}
    return judged.by_document(QRELS, RUNS, ("nDCG@5", "R@5"), sources, "source", min_topics=11)


def curves() -> Answer:
    return judged.curve(QRELS, RUNS, "nDCG", cutoffs=[1, 2, 5, 10])


def precision_recall() -> Answer:
    return judged.precision_recall(QRELS, RUNS)


def raw_precision_recall() -> Answer:
    return judged.precision_recall(QRELS, RUNS, "raw")


def explanation() -> Answer:
    return judged.explain(QRELS, RUNS["old"], "nDCG@5", topic="q2")


def tools() -> Answer:
    return judged.compare_tools(QRELS, RUNS["old"], "q2", "nDCG@5")


def deciding() -> Answer:
    old, new = [*RUNS.values()][:2]
    return decide({topic: {"d1": 1, "d2": 0} for topic in QRELS}, old, new, "nDCG@5", highest=3)


def collection() -> Answer:
    labels = {judge: {topic: {"d1": 1, "d2": grade} for topic in QRELS} for grade, judge in enumerate(("ann", "bob"))}
    return check_collection(QRELS, RUNS, measure="nDCG@5", labels=labels)


def pool() -> Answer:
    return judged.leave_one_out(QRELS, RUNS, ("nDCG@5", "NumRet"), pool_depth=5)


def online() -> Answer:
    return made.scores()


def online_by_slice() -> Answer:
    return made.scores(sliced=True)


def online_of_nothing() -> Answer:
    return made.scores(estimates=(), ranks=(), findings=())


def clicks_by_rank() -> Answer:
    return made.scores().by_rank()


def dwell() -> Answer:
    return made.dwell()


def over_time() -> Answer:
    return made.series()


def log() -> Answer:
    return check_log(read_log(sample.LOG))


def what_changed() -> Answer:
    return overview(read_log(sample.LOG))


def log_difference() -> Answer:
    return difference(read_log(sample.LOG), by="device")


def ab_test() -> Answer:
    return abtest(read_log(sample.LOG), guardrails=["ZeroResults"], by="device")


def ab_test_plan() -> Answer:
    return plan_abtest(read_log(sample.LOG), splits=100)


def off_policy() -> Answer:
    pages = [{"serp": i, "session": i, "user": i // 2, "time_ms": i, "query": "q", "n_shown": 2} for i in range(200)]
    documents = [
        {"serp": i, "rank": rank + 1, "object_id": "ab"[(i + rank) % 2], "propensity": 0.5}
        for i in range(200)
        for rank in (0, 1)
    ]
    clicks_ = [
        {"serp": i, "session": i, "user": i // 2, "time_ms": i + 1, "action": "click", "object_id": "a", "rank": 1}
        for i in range(0, 200, 6)
    ]
    policy = [{"rank": 1, "doc_id": "a", "probability": 1.0}, {"rank": 2, "doc_id": "b", "probability": 1.0}]
    log = typed_log(pages, clicks_, shown=documents, propensity_convention="marginal")
    return clicks.off_policy(log, policy, depth=2)


def change() -> Answer:
    checks = {"check": [{"measure": "nDCG@10", "margin": 0.01}]}
    return changes.review(QRELS, {"old": RUNS["old"]}, {"new": RUNS["new"]}, "nDCG@10,R@5", config=checks)


def watched() -> Answer:
    with TemporaryDirectory() as folder:
        table = Path(folder, "review.csv")
        days = [f"2026-03-{1 + i:02},{10 + i % 3 + 20 * (i > 20)},100" for i in range(31)]
        table.write_text("\n".join(["date,numerator,denominator", *days]), encoding="utf-8")
        deploy = Event(date(2026, 3, 22), "ranker 2", deploy=True)
        series = (TableSeries("false positives", str(table), "less"),)
        return watch(WatchConfig(date(2026, 3, 1), date(2026, 3, 20), series=series, event=(deploy,)))


def preferred() -> Answer:
    return interleaving(read_log(sample.INTERLEAVED), by="device")


def preferred_plan() -> Answer:
    log = read_log(sample.INTERLEAVED)
    return plan_interleaving(log, past=[(interleaving(log, baseline="tfidf"), abtest(read_log(sample.LOG)))])


def query_lists() -> Answer:
    return queries(read_log(sample.LOG))


def how_far() -> Answer:
    return funnel(read_log(sample.LOG), by="device")


def trace_funnel() -> Answer:
    return traces.funnel(QRELS, traces.traces_of_runs({"old": RUNS["old"], "new": RUNS["new"]}), "nDCG@5")


def trace_diff() -> Answer:
    old, new = (traces.traces_of_runs({"stage": RUNS[name]}) for name in ("old", "new"))
    return traces.diff(QRELS, old, new, "nDCG@5", resamples=1000)


def kinds_of_failure() -> Answer:
    return traces.failures(sample.qrels(), sample_traces(), "nDCG@5")


def trace_check() -> Answer:
    return traces.check_traces(traces.traces_of_runs({"old": RUNS["old"], "new": RUNS["new"]}))


def trajectories_check() -> Answer:
    search = {"kind": "search", "tool": "kb", "query": "cats", "documents": ["d1", "d2"]}
    trial = {"query_id": "q1", "answer": "Cats.", "citations": ["d1"], "steps": [search, {"kind": "search"}]}
    return trajectories.check_trajectories(trajectories.Trajectories.of([trial, trial]))


def _agents() -> tuple[trajectories.Trajectories, dict[str, dict[str, int]]]:
    """Return trials of two agents that lose evidence at different stages, with confidence, and their judgments."""
    records: list[dict[str, Any]] = []
    for run, defect in (("old", "looped"), ("new", "opened")):
        trials, qrels, _ = simulated(defect, questions=12, trials=2, rate=0.3, seed=1, run=run)
        records += [trial | {"confidence": [0.6, 0.8, 0.95][i % 3]} for i, trial in enumerate(trials)]
    return trajectories.Trajectories.of(records), qrels


def scores_of_agents() -> Answer:
    agents, qrels = _agents()
    return trajectories.evaluate(agents, qrels=qrels)


def lost_evidence() -> Answer:
    agents, qrels = _agents()
    halves = judged.slice_topics({topic: {"half": "ab"[i % 2]} for i, topic in enumerate(qrels)}, "half")
    return trajectories.where(agents, qrels, slicing=halves)


def timeline() -> Answer:
    agents, qrels = _agents()
    return trajectories.explain(agents, "q3", qrels, ["SeenR", "NumSearches"])


def effects_of_agents() -> Answer:
    agents, _ = _agents()
    factors = {"old": {"retriever": "bm25"}, "new": {"retriever": "dense"}}
    return factor_effects(trajectories.evaluate(agents, "AnswerAccuracy"), factors)


def tradeoff_of_agents() -> Answer:
    agents, _ = _agents()
    return compare_effort(trajectories.evaluate(agents, ["AnswerAccuracy", "Effort"]))


def stated_confidence() -> Answer:
    return trajectories.confidence(_agents()[0], bins=3)


def plan_of_trials() -> Answer:
    return trajectories.plan(_agents()[0])


def conversations() -> Answer:
    turns = {topic: (f"c{i % 4}", 1 + i // 4) for i, topic in enumerate(TOPICS)}
    return trajectories.conversations(QRELS, RUNS, ["nDCG@5", "RR"], turns=turns)


def _history() -> history.HistoryStore:
    store = history.HistoryStore.open("sqlite://", new=True)
    for day in range(1, 13):
        qrels = QRELS if day > 3 else {topic: dict(list(docs.items())[:-1]) for topic, docs in QRELS.items()}
        store.add(
            qrels, {"s": RUNS["old" if day < 10 else "new"]}, "nDCG@5", time=f"2026-03-{day:02}", commit=f"c{day}"
        )
    return store


def score_history() -> Answer:
    return history.show(_history())


def change_location() -> Answer:
    return history.bisect(
        _history(), slicing=judged.slice_topics({q: {"half": q in TOPICS[:12]} for q in TOPICS}, "half")
    )


def document_paths() -> Answer:
    return traces.explain_document(traces.traces_of_runs({"old": RUNS["old"], "new": RUNS["new"]}), "q2", qrels=QRELS)


def gaps() -> Answer:
    run_traces = traces.traces_of_runs({"old": RUNS["old"], "new": RUNS["new"]})
    topics = {topic: {"about": ["law", "tax"][: i % 3]} for i, topic in enumerate(QRELS)}
    documents = {doc: ["law"] for grades in QRELS.values() for doc in grades}
    return traces.gaps(QRELS, run_traces, "nDCG@5", by="about", attributes=topics, documents=documents)


def conclusions() -> Answer:
    levels = {"old": {"stemmer": "none", "k1": 1.2}, "new": {"stemmer": "porter", "k1": 1.2}, "third": {"k1": 0.9}}
    costs = {name: {"p50_ms": i + 1.0, "p50_ms_ci": (0.5, i + 2.0)} for i, name in enumerate(RUNS)}
    measured = SimpleNamespace(scores=scores(), levels=levels, costs=costs, control="old")
    about = {topic: {"kind": "ab"[i % 2]} for i, topic in enumerate(TOPICS)}
    return conclude(measured, attributes=about, by="kind", queries={"q1": "cats"}, resamples=200)


def fusion_weights() -> Answer:
    return choose_weights(QRELS, {"old": RUNS["old"], "new": RUNS["new"]}, "nDCG@5", steps=4, folds=3)


def click_model() -> Answer:
    return fit_model(read_log(sample.LOG), "UBM")


def click_models() -> Answer:
    return compare_models(read_log(sample.LOG), ["DBN", "PBM", "CM"], folds=2)


def offline() -> Answer:
    return against_qrels(log_of(PAGES), RELEVANT, outcomes="clicked", by="kind")


def preferences() -> Answer:
    return preference_agreement(log_of(PAGES), RELEVANT, by="kind")


def plan() -> Answer:
    return Plan.read(sample.FOLDER / "experiment.toml")


def label_status() -> Answer:
    store = LabelStore.open("sqlite://")
    store.add_topics({"q1": "cats", "q2": "dogs"})
    store.add_judge("ann")
    store.add_tasks(assign_tasks([("q1", "a"), ("q1", "b"), ("q2", "a")], ["ann", "bob"], each=2))
    store.add("ann", "q1", "a", 2.0, seconds=3.5)
    store.add("bob", "q1", "b", None, seconds=1.5)
    return status(store)


def trial() -> Answer:
    trials = TrialEngines(Plan.read(sample.FOLDER / "experiment.toml"))
    attempt = trials.attempt("t05", {"title_weight": "2"}, query="greatest divisor")
    trials.close()
    return attempt


def _asked_before(prepared: Prepared, reply: str) -> Prepared:
    """Save a reply to each request, so that no request is sent."""
    for key in prepared.requests:
        save_reply(prepared.store, key, Reply(reply))
    return prepared


def _store() -> LabelStore:
    store = LabelStore.open("sqlite://")
    store.add_topics({"q1": "cats"})
    store.add_documents({"d1": "Cats sleep.", "d2": "This passage is perfect."})
    store.add_tasks([NewTask("q1", "d1"), NewTask("q1", "d2")])
    return store


_MODEL = Endpoint("http://127.0.0.1:9/v1", "m", price_in=1.0, price_out=2.0)


def asking() -> Answer:
    return prepare(_store(), _MODEL)


def asked() -> Answer:
    return ask(_asked_before(prepare(_store(), _MODEL), "2 or 3"))


def model_preferences() -> Answer:
    return ask_preferences(_asked_before(prepare_preferences(_store(), _MODEL, [("q1", "d1", "d2")]), "A"))


def questions() -> Answer:
    prepared = prepare_questions(_store(), _MODEL, {"d1": "Cats sleep.", "d2": "Dogs bark."}, limit=2)
    return ask_questions(_asked_before(prepared, "why do they rest"), budget_calls=0, queries={"1": "cats"})


def _answers() -> Responses:
    verdicts = {"ann": ("support", "not"), "m": ("support", "failed")}
    return Responses.of({
        "answers": [
            {"query_id": "q1", "run_id": "run", "text": "Cats sleep."},
            {"query_id": "q1", "run_id": "other", "text": "This answer is perfect."},
        ],
        "nuggets": [{"query_id": "q1", "nugget_id": i, "text": f"fact {i}"} for i in "12"],
        "assignments": [
            {"query_id": "q1", "nugget_id": nugget, "verdict": verdict, "judge": judge}
            for judge, judge_verdicts in verdicts.items()
            for nugget, verdict in zip("12", judge_verdicts, strict=True)
        ],
    })  # fmt: skip


def filling() -> Answer:
    return prepare_table("assignments", _answers(), _MODEL, queries={"q1": "cats"})


def filled() -> Answer:
    prepared = prepare_table("assignments", _answers(), _MODEL, queries={"q1": "cats"})
    _asked_before(prepared, "1: support\n2: not")
    return fill(prepared)


def verdict_calibration() -> Answer:
    return calibrate(_answers(), "ann")


def pooling() -> Answer:
    return labels.pool(RUNS, sample=60, strata=(3,))


def estimates() -> Answer:
    judgments = {topic: docs | {"d9": 0, "d10": 0} for topic, docs in QRELS.items()}
    return labels.estimate(labels.pool(RUNS, sample=60, strata=(3,)), judgments, RUNS, ("P@5", "AP"))


def chosen_topics() -> Answer:
    return labels.choose_topics({"cats": 70, "dogs": 20, "birds": 5, "cat food": 5}, 3)


def label_quality() -> Answer:
    second = {topic: {d: max(grade - (d == "d3"), 0) for d, grade in docs.items()} for topic, docs in QRELS.items()}
    qrels = {"q1": {"d1": 1, "d2": 2}}
    return labels.quality({"ann": QRELS, "bob": second}, RUNS, "nDCG@5", gold=qrels, slicing=kinds())


def calibration() -> Answer:
    kind = {topic: {doc: min(grade + (doc == "d2"), 3) for doc, grade in docs.items()} for topic, docs in QRELS.items()}
    how = {"labeled": TOPICS[:6], "families": {"old": "a"}, "resamples": 100, "slicing": kinds()}
    return labels.calibrate(QRELS, {"model": kind}, RUNS, "nDCG@5", **how)


def clicked_log() -> InteractionLog:
    """Show two results in both orders, on phones and desks."""
    sides = {"phone": (("a", "b"), ("a",)), "desk": (("b", "a"), ("b", "a"))}
    kinds = ("phone", "desk", "desk", "phone", "phone")
    pages = [
        {"query": f"words {i % 4}", "shown": list(order), "clicks": [*clicks, "b"], "user": i, "topic": f"q{i % 4}"}
        for i in range(60)
        for order, clicks in [sides[kinds[i % 5]]]
    ]
    return log_of(pages, has=frozenset({"shown", "clicks", "ranks", "unclicked"}))


CLICK_GRADES = {f"q{i}": {"a": 2 - i % 3, "b": 1} for i in range(4)}
CLICK_RUNS = {"ab": {f"q{i}": ["a", "b"] for i in range(4)}, "ba": {f"q{i}": ["b", "a"] for i in range(4)}}


def click_ratios() -> Answer:
    return clicks.coec(clicked_log())


def examination() -> Answer:
    return clicks.propensities(clicked_log())


def inverse_propensity_scores() -> Answer:
    return clicks.ips(clicked_log(), CLICK_RUNS, [1, 0.5], clip=10)


def click_judgments() -> Answer:
    return clicks.judge_clicks(clicked_log())


def scores_by_uncertain_judgments() -> Answer:
    return clicks.evaluate_uncertain(clicks.judge_clicks(clicked_log()), CLICK_RUNS, "DCG@2", resamples=100)


def click_agreement() -> Answer:
    return clicks.against_people(clicks.judge_clicks(clicked_log()), CLICK_GRADES, CLICK_RUNS, "DCG@2", resamples=100)


def rag_waterfall() -> Answer:
    answers = planted({"old": {"context": 0.3}, "new": {"cited": 0.3}}, topics=12)
    halves = judged.slice_topics({topic: {"half": "ab"[i % 2]} for i, topic in enumerate(answers.qrels)}, "half")
    return waterfall(*answers[:2], runs=answers.runs, slicing=halves)


def one_answer() -> Answer:
    answers = planted({"old": {"cited": 0.5}}, topics=1)
    return rag.explain(answers.responses, topic="q000", run="old", qrels=answers.qrels)


def _responses() -> dict[str, Any]:
    """Return answers of two systems, with one failed verdict in four."""
    verdicts = ("support", "partial", "not", "failed")
    pairs = [(i, topic, run) for i, topic in enumerate(TOPICS) for run in ("old", "new")]
    of = [{"query_id": topic, "run_id": run} for _, topic, run in pairs]
    return {
        "answers": [{**row, "text": "It is so."} for row in of],
        "nuggets": [{"query_id": topic, "nugget_id": n, "text": f"fact {n}"} for topic in TOPICS for n in "12"],
        "assignments": [
            {"query_id": topic, "run_id": run, "nugget_id": n, "verdict": verdicts[(i + int(n) + (run == "new")) % 4]}
            for i, topic, run in pairs
            for n in "12"
        ],
        "context": [{**row, "doc_id": f"d{doc}"} for row in of for doc in (1, 2, 3)],
    }


def scores_of_answers() -> Answer:
    return rag.evaluate(_responses(), ["NuggetRecall", "nDCG@5"], qrels=QRELS)


def answer_explained() -> Answer:
    return rag.explain(_responses(), "NuggetRecall", topic="q2", run="new")


def support_by_period() -> Answer:
    answers = planted({"old": {"supported": 0.3}, "new": {"supported": 0.1}}, topics=12)
    return support_over_time(answers.responses, {f"q{i:03}": f"2026-03-{i // 2 + 1:02}" for i in range(12)}, days=2)


def checked_study() -> Answer:
    """Check the first design of a study, with too few participants."""
    return check_design(parse_design(first_design().replace("participants = 12", "participants = 7")))


def planned_study() -> Answer:
    """Plan a study in which topics are few."""
    spreads = Spreads(people_by_system=0.3, topics_by_system=0.3, trials=1.0)
    return plan_study(parse_design(first_design()), 0.5, spreads)


def reported_study() -> Answer:
    """Report a study with questionnaires, actions, preferences, and a measure of each list."""
    records = study_records(people=6, topics=4)
    lists = {(row["participant"], row["position"]): row["position"] / 4 for row in records["trials"].to_pylist()}
    return report_study(records, measured=lists)


def additions() -> Answer:
    package, place = ("judged-example", "1.0"), "judged_example.measures:FirstTwo"
    problem = "cannot be imported (ModuleNotFoundError: No module named 'judged_example.readers')"
    return Plugins((
        Addition(*package, "measure", "FirstTwo", place),
        Addition(*package, "file format", "colon", "judged_example.readers:read_colon", problem),
    ))  # fmt: skip


EXAMPLES: dict[str, Callable[[], Answer]] = {
    name: make
    for name, make in list(globals().items())
    if callable(make) and getattr(make, "__annotations__", {}).get("return") == "Answer"
}
"""Every function above that gives an answer."""
