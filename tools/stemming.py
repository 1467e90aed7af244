"""Write docs/stemming.md, about two questions and three collections: ``stemming.py DATA [--dsn DSN] [--to FOLDER]``.

DATA is a folder with ``cranfield``, ``cisi``, and ``cacm`` (docs.jsonl.gz, queries.tsv, qrels). Results are saved in
FOLDER and reused. With DSN, a PostgreSQL server is included. The tests compare results of engines with the
page; times depend on the machine.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from judged import diff, evaluate
from judged.data import Qrels, Topics
from judged.data.texts import Text, Texts
from judged.errors import JudgedWarning
from judged.pipelines.experiments.answer import Conclusions
from judged.pipelines.experiments.conclusions import conclude
from judged.pipelines.experiments.engines import find_engine
from judged.pipelines.experiments.engines.base import title_and_text
from judged.pipelines.experiments.results import Results
from judged.pipelines.experiments.runner import run
from judged.pipelines.traces import Traces
from judged.results import CHANGE, NUMBER, TEXT, Column, Table, number, significant
from judged.results.decimals import decimal
from judged.stats import adjust

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "stemming.md"
NAMES = {"cranfield": "Cranfield", "cisi": "CISI", "cacm": "CACM"}
QRELS = {"cranfield": "cranfield.graded.qrels", "cisi": "cisi.qrels", "cacm": "cacm.qrels"}
BM25 = ("sqlite", "tantivy", "bm25s")
MEASURES = ("nDCG@10", "R@100")
STEMMED = "stemmer=english"
DEPTH = 100

EARLIER = {
    ("sqlite", "unicode61"): ({"stemmer": "none"}, "title once", 0.3299, 0.692),
    ("sqlite", "porter"): ({"stemmer": "english"}, "title once", 0.3535, 0.723),
    ("sqlite", "trigram"): ({"stemmer": "none", "tokens": "trigrams"}, "title once", 0.3253, 0.700),
    ("tantivy", "default"): ({"stemmer": "none"}, "title once", 0.3309, 0.694),
    ("tantivy", "en_stem"): ({"stemmer": "english"}, "title once", 0.3554, 0.726),
    ("bm25s", "none"): ({"stemmer": "none", "stop_words": "none"}, "title once", 0.3359, 0.700),
    ("bm25s", "stop words and stemmer"): ({}, "title once", 0.3650, 0.735),
    ("dense", "WordLlama, 256"): ({}, "title twice", 0.3279, 0.697),
}
"""Results on Cranfield of earlier scripts that called each library directly: nDCG@10, R@100."""

HEAD = """# Case study: stemming and hybrid retrieval

**Question**: does stemming improve BM25, and does a hybrid of BM25 and static vectors justify its cost?

**Data**: three small collections with public judgments. Cranfield has 1,400 abstracts on aerodynamics and 225
topics with graded judgments. CISI has 1,460 abstracts on information science and 76 judged topics. CACM has
3,204 titles and abstracts on computing and 52 judged topics.

**Method**: `tools/stemming.py` runs [experiments](experiments.md) with several engines and 100 documents per
query, and writes this page. Stop words are kept, except in PostgreSQL's dictionary. Intervals are 95% over
topics; tests are paired randomization tests."""


class Collection(NamedTuple):
    """Collection with its experiments."""

    name: str
    files: dict[str, str]
    texts: Texts
    stemming: Results  # engines with BM25, with and without stemmer
    by_engine: dict[str, Results]  # the same, by engine
    hybrid: Results
    stages: dict[str, float]  # median milliseconds of each stage of the hybrid


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--dsn", default="")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "stemming")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        PAGE.write_text(page(options.data, options.to, options.dsn), encoding="utf-8")
    return 0


def page(data: Path, folder: Path, dsn: str) -> str:
    """Build the page."""
    collections = [collection(name, data / name, folder / name, dsn) for name in NAMES]
    parts = [
        HEAD,
        "## Effect of stemming",
        *stemming(collections),
        "## Effectiveness and cost of the hybrid",
        *hybrid(collections),
    ]
    return "\n\n".join([*parts, "## Effect of indexed fields", *rows(data / "cranfield"), *TAIL]).strip() + "\n"


def collection(name: str, data: Path, folder: Path, dsn: str) -> Collection:
    """Run the experiments on a collection that have no saved results."""
    files = {"documents": "docs.jsonl.gz", "queries": "queries.tsv", "qrels": f"qrels/{QRELS[name]}"}
    files = {key: str(data / file) for key, file in files.items()}

    def run_plan(control: dict[str, Any], factors: dict[str, Any]) -> Results:
        plan = {**files, "measures": list(MEASURES), "control": control, "factors": factors}
        plan["pipelines"] = {"hybrid": {"engine": "fusion", "lists": ["bm25s", "dense"]}}
        return run(plan, folder, progress=lambda label, _: print(f"{name}: {label}", file=sys.stderr))

    levels, no_text_processing = ["none", "english"], {"stop_words": "none", "stemmer": "none"}
    controls = {"sqlite": {"stemmer": "none"}, "tantivy": no_text_processing, "bm25s": no_text_processing}
    controls |= {"postgresql": {"dsn": dsn, "stemmer": "none"}} if dsn else {}
    results_by_engine = {
        engine: run_plan({"engine": engine, **control}, {"stemmer": levels}) for engine, control in controls.items()
    }
    hybrid = run_plan(
        {"engine": "bm25s", **no_text_processing, "stemmer": "english"}, {"engine": ["bm25s", "dense", "hybrid"]}
    )
    stages = stages_of(hybrid.traces("hybrid"))
    stemming = run_plan(
        {"engine": "sqlite", **no_text_processing}, {"engine": list(BM25), "stemmer": levels}
    )  # last, because its runs are read later
    return Collection(NAMES[name], files, Texts.read(files["documents"]), stemming, results_by_engine, hybrid, stages)


def table_with_note(table: Table) -> str:
    """Format a table with its note below."""
    return f"{table.markdown().strip()}\n\n" + wrapped(f"{table.note[:1].upper()}{table.note[1:]}.")


def wrapped(text: str, indent: str = "") -> str:
    """Wrap a paragraph or a list item."""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_on_hyphens=False)


def stages_of(traces: Traces) -> dict[str, float]:
    """Return the median latency of each stage, in milliseconds."""
    spans = [span for query in traces.query_ids for span in traces.spans_of(query).values()]
    names = dict.fromkeys(span.stage for span in spans)
    return {name: median(span.latency_ms or 0 for span in spans if span.stage == name) for name in names}


def stemming(collections: list[Collection]) -> list[str]:
    """Return the section on the effect of stemming: by engine, over engines, and for one topic."""
    lines: list[tuple[Any, ...]] = []
    items: list[str] = []
    for data_set in collections:
        effects = [(engine, results, effect_of(conclude(results))) for engine, results in data_set.by_engine.items()]
        adjusted = adjust([effect.estimate.p for _, _, effect in effects])
        for (engine, results, effect), p in zip(effects, adjusted, strict=True):
            means = [row.value for row in results.scores.estimates(ci="none") if row.measure == MEASURES[0]]
            lines.append((data_set.name, engine, *means, effect, p))
        pooled = effect_of(conclude(data_set.stemming))
        lines.append((data_set.name, "all three with BM25", None, None, pooled, pooled.estimate.p))
        low, high = pooled.estimate.interval
        is_significant = low > 0 or high < 0
        items.append(
            f"- **{data_set.name}**: {decimal(pooled.estimate.difference, 4, '+')} ({decimal(low, 3, '+')} to"
            f" {decimal(high, 3, '+')}) over {pooled.estimate.n} topics; higher on {pooled.wins.wins}, lower"
            f" on {pooled.wins.losses}."
            + ("" if is_significant else f" Not significant; the detectable effect is {decimal(pooled.detectable, 3)}.")
        )
    columns = (
        Column("collection", [line[0] for line in lines], TEXT),
        Column("engine", [line[1] for line in lines], TEXT),
        Column("none", [line[2] for line in lines], NUMBER, "no stemmer"),
        Column("english", [line[3] for line in lines], NUMBER, "stemmer"),
        Column("difference", [line[4].estimate.difference for line in lines], CHANGE,
               ci=[line[4].estimate.interval for line in lines]),
        Column("p", [float(line[5]) for line in lines], number(3), "p"),
    )  # fmt: skip
    table = Table("stemming", columns, labels=2, note=(
        "nDCG@10; 95% intervals, paired randomization tests over topics; p of single engines corrected by Holm in"
        " each collection, p of the three together is of one test"
    ))  # fmt: skip
    return [
        STEMMING_TEXTS[0],
        "\n".join(wrapped(item, "  ") for item in items),
        table.markdown(),
        STEMMING_TEXTS[1],
        wrapped(conflated(collections[1])),
        STEMMING_TEXTS[2],
    ]


def conflated(corpus: Collection, topic: str = "101") -> str:
    """Describe the topic with the largest loss by conflation."""
    unstemmed, stemmed = (corpus.stemming.run(name) for name in ("bm25s", f"bm25s {STEMMED}"))
    sides = diff(corpus.files["qrels"], unstemmed, stemmed, topic, cutoff=DEPTH)
    (relevant_row,) = (row for row in sides.topics[0].rows if (row.grade or 0) > 0)
    texts = [title_and_text(text).lower() for text in corpus.texts.documents.values()]
    n_stem, n_word = (sum(bool(re.search(rf"\b{word}", text)) for text in texts) for word in ("comput", "computation"))
    return (
        f"A stem can conflate words that differ in meaning. Topic {topic} of {corpus.name} asks for *parallel"
        f" computations*. {n_word} of {len(texts):,} documents contain a word that starts with *computation*, but"
        f" {n_stem} contain the stem *comput*, as in *computer*. bm25s then ranks the only relevant document"
        f" {relevant_row.second_rank} instead of {relevant_row.first_rank}."
    )


def effect_of(conclusions: Conclusions) -> Any:
    """Return the main effect of the stemmer."""
    return next(effect for effect in conclusions.effects.main if effect.factor == "stemmer")


def hybrid(collections: list[Collection]) -> list[str]:
    """Return the section on effectiveness and cost of the hybrid and its components."""
    lines: list[tuple[Any, ...]] = []
    for data_set in collections:
        conclusions_by_measure = {measure: conclude(data_set.hybrid, measure=measure) for measure in MEASURES}
        pairs = {
            (measure, pair.second if pair.first == "control" else pair.first): pair
            for measure, measure_conclusions in conclusions_by_measure.items()
            for pair in measure_conclusions.comparison.measures[0].pairs
        }
        for name in data_set.hybrid.levels:
            costs = data_set.hybrid.costs[name]
            scores = [row.value for row in data_set.hybrid.scores.estimates(ci="none") if row.run == name]
            gains = [pairs.get((measure, name)) for measure in MEASURES]
            label = "bm25s, stemmed (control)" if name == "control" else name
            lines.append(
                (data_set.name, label, scores, gains, costs, name in conclusions_by_measure[MEASURES[0]].tradeoff.front)
            )
    columns: list[Column] = [
        Column("collection", [line[0] for line in lines], TEXT),
        Column("configuration", [line[1] for line in lines], TEXT),
    ]
    for measure_index, measure in enumerate(MEASURES):
        gains = [line[3][measure_index] for line in lines]
        columns += [
            Column(measure, [line[2][measure_index] for line in lines], NUMBER),
            Column(f"gain {measure}", [gain and gain.result.difference for gain in gains], CHANGE, "against control",
                   ci=[gain and gain.result.interval for gain in gains],
                   mark=["*" if gain and gain.result.significant else "" for gain in gains]),
        ]  # fmt: skip
    for name in ("p50_ms", "index_cpu_seconds", "peak_mb", "index_mb"):
        costs_of_line = [line[4] for line in lines]
        noise_intervals = [data_set.get(f"{name}_noise") for data_set in costs_of_line]
        columns.append(
            Column(
                name,
                [data_set[name] for data_set in costs_of_line],
                significant(3),
                ci=noise_intervals if any(noise_intervals) else None,
            )
        )
    note = (
        "simultaneous 95% intervals of the two differences, by measure and collection; * significant after Holm's"
        " correction for the two; p50_ms: minimum and maximum of three rounds. If two of these ranges overlap, the"
        " difference is noise"
    )
    stages = "; ".join(
        f"{data_set.name}: " + ", ".join(f"{name} {decimal(ms, 2)} ms" for name, ms in data_set.stages.items())
        for data_set in collections
    )
    latency_text = (
        f"Median latency of the stages, each query asked once: {stages}. `judged.fuse` fuses in Python; an engine that"
        " fuses itself would need little more time than its parts."
    )
    return [
        HYBRID_TEXTS[0],
        table_with_note(Table("hybrid", tuple(columns), labels=2, note=note)),
        wrapped(latency_text),
        HYBRID_TEXTS[1],
    ]


def rows(data: Path) -> list[str]:
    """Return the section that compares engines on Cranfield with the fields of adapters and of earlier scripts."""
    qrels, queries = Qrels.read(data / "qrels" / QRELS["cranfield"]), Topics.read(data / "queries.tsv")
    query_texts = {query: queries.text(query) for query in queries.table["query_id"].to_pylist()}
    documents = Texts.read(data / "docs.jsonl.gz").documents
    texts_by_title = {
        "title once": {doc: Text("", title_and_text(text)) for doc, text in documents.items()},
        "title twice": {doc: Text("", f"{text.title} {text.text}") for doc, text in documents.items()},
    }
    lines: list[tuple[Any, ...]] = []
    for (name, setting_label), (settings, title_mode, *earlier) in EARLIER.items():
        scores = [
            score_engine(name, settings, indexed_texts, query_texts, qrels)
            for indexed_texts in (documents, texts_by_title[title_mode])
        ]
        lines.append((name, setting_label, *earlier, *scores[1], *scores[0]))
    titles = ("engine", "setting", "earlier nDCG@10", "earlier R@100", "same text nDCG@10", "same text R@100",
              "adapter nDCG@10", "adapter R@100")  # fmt: skip
    columns = tuple(
        Column(title, [line[column] for line in lines], TEXT if column < 2 else number(3) if column % 2 else NUMBER)
        for column, title in enumerate(titles)
    )
    return [FIELDS_TEXTS[0], Table("rows", columns, labels=2).markdown(), FIELDS_TEXTS[1]]


def score_engine(
    name: str, settings: dict[str, Any], documents: Any, query_texts: dict[str, str], qrels: Qrels
) -> tuple[float, float]:
    """Build an engine, run every query, and return nDCG@10 and R@100."""
    engine = find_engine(name)()
    defaults = {key: setting.default for key, setting in engine.settings.items()}
    with tempfile.TemporaryDirectory() as folder:
        engine.build(documents, {**defaults, **settings}, Path(folder))
        results = {query: dict(engine.search(text, 100)) for query, text in query_texts.items()}
        engine.close()
    means = evaluate(qrels, {"run": results}, MEASURES).aggregate()["run"]
    return means[MEASURES[0]], means[MEASURES[1]]


STEMMING_TEXTS = (
    """The control has no stemmer. The other level uses Porter's stemmer in SQLite and Snowball's English stemmer in
the other engines. Change of nDCG@10 over the three engines with BM25:""",
    """PostgreSQL's `ts_rank` uses term frequencies without inverse document frequencies. Its results say little about
the other engines.""",
    """**Conclusion.** On Cranfield, stemming improves nDCG@10 by about 0.02. On CISI and CACM the means increase too,
but the intervals include relevant losses and gains, so the effect is not significant. Each collection has
topics that lose.""",
)
HYBRID_TEXTS = (
    """The control is bm25s with a stemmer. `dense` uses WordLlama's static vectors with 256 dimensions and exact
search. The hybrid is reciprocal rank fusion of both (k = 60, equal weights, no tuning).""",
    """**Conclusion.** The hybrid has no significant gain in nDCG@10 on any collection. On CISI and CACM, it improves
R@100 by 0.036 to 0.044, even though the vectors have a much lower nDCG@10 than BM25 on CACM. This can help a
reranker of 100 documents. The costs are memory, indexing time, and latency.""",
)
FIELDS_TEXTS = (
    """Earlier scripts called each library directly on Cranfield. With the same text, the engines reproduce their
scores exactly. The adapters index other fields. In Cranfield, the text of an abstract starts with its title.
The scripts used one field with the title once, and for WordLlama the title twice. The adapters of SQLite and
tantivy index title and text, so title words count twice; bm25s and WordLlama index them once. Twice is better
for each of these engines.""",
    """Here, the setting `stop words and stemmer` of bm25s removes stop words, unlike in the tables above.""",
)
TAIL = (
    """## Limits

- The collections contain English abstracts of the sixties and seventies, with long queries by specialists. Short
  queries, other languages, and long documents need other collections.
- Static word vectors are the weakest form of dense retrieval. The same plan can run a transformer with `embed`.
- Engines differ in tokenization, stemmers, and indexed fields, not only in BM25. Counting a title twice changes nDCG@10
  as much as a stemmer does.
- Times are of a few thousand documents in one process on a shared machine. They show orders of magnitude only.
- A nonsignificant result does not show that there is no effect. With 52 or 76 topics, effects of 0.06 are often missed.
- Corrections apply to each table, not to the whole page. CISI and CACM list relevant documents only, so unlisted
  documents count as not relevant.

To repeat the study: `python tools/stemming.py DATA`, with folders `cranfield`, `cisi`, and `cacm`.""",
)


if __name__ == "__main__":
    sys.exit(main())
