"""Recompute the values of cases.toml, and say where they differ. Uses pandas and numpy, and nothing of judged.

Each function reads the files of one case explicitly, as a person does who knows what is in them: delimiter, encoding,
columns, and what is wrong. ``python expected.py`` compares all cases; ``python expected.py ID`` prints one.
"""

import gzip
import io
import json
import re
import string
import sys
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
FILES = HERE / "files"

Qrels = dict[str, dict[str, float]]
Run = dict[str, list[str]]

CASES: dict[str, Callable[[Path], dict]] = {}


def case(function):
    CASES[function.__name__] = function
    return function


# Measures of rankings


def ndcg(grades, ranking, k):
    def dcg(gains):
        return sum(max(gain, 0) / np.log2(rank + 1) for rank, gain in enumerate(gains[:k], 1))

    ideal = dcg(sorted(grades.values(), reverse=True))
    return dcg([grades.get(doc, 0) for doc in ranking]) / ideal if ideal else 0.0


def precision(relevant, ranking, k):
    return len(relevant & set(ranking[:k])) / k


def recall(relevant, ranking, k):
    return len(relevant & set(ranking[:k])) / len(relevant)


def success(relevant, ranking, k):
    return float(bool(relevant & set(ranking[:k])))


def reciprocal_rank(relevant, ranking, k):
    return next((1 / rank for rank, doc in enumerate(ranking[:k], 1) if doc in relevant), 0.0)


def average_precision(relevant, ranking, k):
    found = [rank for rank, doc in enumerate(ranking[:k], 1) if doc in relevant]
    return sum(i / rank for i, rank in enumerate(found, 1)) / len(relevant)


BINARY = {"P": precision, "R": recall, "Success": success, "RR": reciprocal_rank, "AP": average_precision}


def scores(qrels: Qrels, run: Run, *measures: str) -> dict:
    """Mean over the topics of the qrels: a topic that the run lacks scores 0."""
    result: dict = {"topics": len(qrels)}
    for measure in measures:
        name, rel, cutoff = re.fullmatch(r"(\w+?)(?:\(rel=(\d+)\))?(?:@(\d+))?", measure).groups()
        k = int(cutoff) if cutoff else None
        values = []
        for topic, grades in qrels.items():
            ranking = run.get(topic, [])
            assert len(ranking) == len(set(ranking)), (topic, ranking)
            if name == "nDCG":
                values.append(ndcg(grades, ranking, k))
            else:
                relevant = {doc for doc, grade in grades.items() if grade >= int(rel or 1)}
                values.append(BINARY[name](relevant, ranking, k))
        result[measure] = float(np.mean(values))
    return result


def qrels_of(rows: Iterable) -> Qrels:
    qrels: Qrels = defaultdict(dict)
    for topic, doc, grade in rows:
        assert doc not in qrels[topic], (topic, doc)
        qrels[topic][doc] = float(grade)
    return dict(qrels)


def run_by_rank(rows: Iterable) -> Run:
    """Rows of topic, document, and what rises with the rank."""
    run = defaultdict(list)
    for topic, doc, rank in rows:
        run[topic].append((float(rank), doc))
    assert all(len({rank for rank, _ in pairs}) == len(pairs) for pairs in run.values())
    return {topic: [doc for _, doc in sorted(pairs)] for topic, pairs in run.items()}


def run_by_score(rows: Iterable) -> Run:
    return run_by_rank((topic, doc, -float(score)) for topic, doc, score in rows)


def table(path: Path, **options) -> pd.DataFrame:
    """All cells as text, so that no identifier is changed."""
    return pd.read_csv(path, dtype=str, keep_default_na=False, **options)


def rows_of(frame: pd.DataFrame, *columns: str) -> list[tuple]:
    return list(frame[list(columns)].itertuples(index=False, name=None))


def words(path: Path, encoding="utf-8") -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding=encoding).splitlines() if line.strip()]


def read_json(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


def read_jsonl(path: Path) -> list:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# Measures of answers, as in the evaluation script of SQuAD


def normalized(text: str | None) -> list[str]:
    text = "".join(c for c in (text or "").lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def token_f1(answer, reference):
    a, b = normalized(answer), normalized(reference)
    common = sum((Counter(a) & Counter(b)).values())
    return 2 * common / (len(a) + len(b)) if common else 0.0


def answers(rows: Iterable) -> dict:
    """Rows of an answer and its references, the best of which counts."""
    rows = list(rows)
    return {
        "answers": len(rows),
        "exact_match": float(np.mean([any(normalized(a) == normalized(b) for b in refs) for a, refs in rows])),
        "token_f1": float(np.mean([max(token_f1(a, b) for b in refs) for a, refs in rows])),
    }


# Metrics of logs


def log_metrics(pages: list[dict]) -> dict:
    """Pages have the positions of their clicks and, where known, the number of results."""
    clicks = [len(page["clicks"]) for page in pages]
    result = {
        "searches": len(pages),
        "clicks": sum(clicks),
        "PageCTR": float(np.mean([n > 0 for n in clicks])),
        "ClicksPerPage": float(np.mean(clicks)),
    }
    if all("results" in page for page in pages):
        result["ZeroResults"] = float(np.mean([page["results"] == 0 for page in pages]))
    return result


# Files without a mistake


@case
def shop_csv(at):
    q = table(at / "judgments.csv")
    r = table(at / "results.csv")
    return scores(
        qrels_of(rows_of(q, "search_term", "sku", "relevance_label")),
        run_by_rank(rows_of(r, "search_term", "sku", "pos")),
        "nDCG@10",
        "P@5",
    )


@case
def german_excel(at):
    q = table(at / "Bewertungen.csv", sep=";", encoding="cp1252")
    r = table(at / "Trefferliste.csv", sep=";", encoding="cp1252")
    r["Punktzahl"] = r["Punktzahl"].str.replace(",", ".")
    run = run_by_score(rows_of(r, "Suchbegriff", "Artikelnummer", "Punktzahl"))
    assert run == run_by_rank(rows_of(r, "Suchbegriff", "Artikelnummer", "Rang"))
    return scores(qrels_of(rows_of(q, "Suchbegriff", "Artikelnummer", "Relevanz")), run, "nDCG@10", "RR")


@case
def japanese_csv(at):
    q = table(at / "評価.csv", encoding="cp932")
    r = table(at / "検索結果.csv")
    return scores(
        qrels_of(rows_of(q, "検索語", "商品コード", "関連度")),
        run_by_rank(rows_of(r, "検索語", "商品コード", "順位")),
        "nDCG@10",
        "P@5",
    )


@case
def parquet_warehouse(at):
    q = pd.read_parquet(at / "judgements.parquet")
    r = pd.read_parquet(at / "ranking.parquet")
    return scores(
        qrels_of(rows_of(q, "query_id", "product_id", "grade")),
        run_by_rank(rows_of(r, "query_id", "product_id", "rank")),
        "nDCG@10",
        "R@10",
    )


@case
def ranx_json(at):
    with gzip.open(at / "run.json.gz", "rt", encoding="utf-8") as file:
        run = json.load(file)
    ranking = run_by_score((t, d, s) for t, docs in run.items() for d, s in docs.items())
    return scores(read_json(at / "qrels.json"), ranking, "nDCG@10", "RR")


@case
def es_rank_eval(at):
    request, response = read_json(at / "rank_eval_request.json"), read_json(at / "rank_eval_response.json")
    qrels = qrels_of((r["id"], rating["_id"], rating["rating"]) for r in request["requests"] for rating in r["ratings"])
    run = {t: [hit["hit"]["_id"] for hit in detail["hits"]] for t, detail in response["details"].items()}
    result = scores(qrels, run, "P@5", "nDCG@10")
    assert np.isclose(result["P@5"], response["metric_score"])
    return result


@case
def quepid_snapshot(at):
    q = table(at / "Movies_case_ratings.csv")
    r = table(at / "snapshot_baseline.csv")
    return scores(
        qrels_of(rows_of(q, "query", "docid", "rating")),
        run_by_rank(rows_of(r, "Query Text", "Doc ID", "Doc Position")),
        "nDCG@10",
        "P@5",
    )


@case
def quepid_book(at):
    book = table(at / "book_12_export.csv")
    raters = list(book.columns[2:])
    given = book[raters].ne("")
    both = book[given[raters[0]] & given[raters[1]]]
    return {
        "topics": book["query"].nunique(),
        "pairs": len(book),
        "judges": len(raters),
        "judgments": int(given.to_numpy().sum()),
        "judged_by_both": len(both),
        "agreement_of_both": float((both[raters[0]] == both[raters[1]]).mean()),
    }


@case
def argilla_records(at):
    records, run = read_json(at / "records.json"), read_json(at / "retrieved.json")
    qrels = qrels_of(
        (r["metadata"]["query_id"], r["metadata"]["doc_id"], r["responses"]["relevance"][0]["value"]) for r in records
    )
    ranking = run_by_score((t, hit["doc_id"], hit["score"]) for t, hits in run.items() for hit in hits)
    return scores(qrels, ranking, "nDCG@10", "P@5")


@case
def beir_folder(at):
    folder = at / "scifact-mini"
    q = table(folder / "qrels/test.tsv", sep="\t")
    run = read_json(at / "results.json")
    ranking = run_by_score((t, d, s) for t, docs in run.items() for d, s in docs.items())
    result = scores(qrels_of(rows_of(q, "query-id", "corpus-id", "score")), ranking, "nDCG@10", "R@10")
    documents, queries = read_jsonl(folder / "corpus.jsonl"), read_jsonl(folder / "queries.jsonl")
    return result | {"documents": len(documents), "queries": len(queries)}


@case
def msmarco_dev(at):
    qrels = qrels_of((t, d, g) for t, _, d, g in words(at / "qrels.dev.small.tsv"))
    return scores(qrels, run_by_rank(words(at / "run.dev.small.tsv")), "RR@10", "R@10")


@case
def letor_ranklib(at):
    lines = words(at / "test.txt")
    docs = [(line[1].removeprefix("qid:"), line[line.index("#docid") + 2], line[0]) for line in lines]
    by_topic = defaultdict(list)
    for topic, doc, _ in docs:
        by_topic[topic].append(doc)
    run = run_by_score((t, by_topic[t][int(i)], s) for t, i, s in words(at / "lambdamart.score"))
    return scores(qrels_of(docs), run, "nDCG@10", "P@5")


@case
def bioasq(at):
    gold, system = read_json(at / "BioASQ-batch3_golden.json"), read_json(at / "my_system_batch3.json")
    qrels = {q["id"]: dict.fromkeys(q["documents"], 1.0) for q in gold["questions"]}
    return scores(qrels, {q["id"]: q["documents"] for q in system["questions"]}, "AP", "R@10")


@case
def mteb_predictions(at):
    qrels = qrels_of((r["query-id"], r["corpus-id"], r["score"]) for r in read_jsonl(at / "nfcorpus_qrels_test.jsonl"))
    run = read_json(at / "NFCorpus_predictions.json")["default"]["test"]
    ranking = run_by_score((t, d, s) for t, docs in run.items() for d, s in docs.items())
    return scores(qrels, ranking, "nDCG@10", "R@10")


@case
def ntcir_grades(at):
    qrels = qrels_of((t, d, g.removeprefix("L")) for t, d, g in words(at / "www2_e.qrels"))
    lines = [line for line in words(at / "MYLAB-E-CO-NU-Base-1.txt") if not line[0].startswith("<SYSDESC>")]
    return scores(qrels, run_by_rank((line[0], line[2], line[3]) for line in lines), "nDCG@10", "RR")


@case
def clef_checkthat(at):
    qrels = qrels_of((t, d, g) for t, _, d, g in words(at / "dev-qrels.tsv"))
    run = run_by_score((t, d, s) for t, _, d, _, s, _ in words(at / "subtask-2A-english.tsv"))
    return scores(qrels, run, "AP@5", "RR")


@case
def movielens_dat(at):
    lines = [line.split("::") for line in (at / "test.dat").read_text(encoding="utf-8").splitlines()]
    r = table(at / "recommendations.csv")
    return scores(
        qrels_of(line[:3] for line in lines),
        run_by_score(rows_of(r, "userId", "movieId", "predicted_rating")),
        "P(rel=4)@5",
        "R(rel=4)@10",
    )


@case
def wide_utf16(at):
    q = table(at / "grades.txt", sep="\t", encoding="utf-16")
    r = table(at / "top5.txt", sep="\t", encoding="utf-16")
    run = {row[0]: [page for page in row[1:] if page] for row in r.itertuples(index=False, name=None)}
    return scores(qrels_of(rows_of(q, "Query", "Page", "Grade")), run, "nDCG@10", "R@5")


@case
def systems_long(at):
    qrels = qrels_of(rows_of(table(at / "qrels.csv"), "qid", "docid", "rel"))
    r = table(at / "all_models.csv")
    return {
        model: scores(qrels, run_by_rank(rows_of(rows, "qid", "docid", "rank")), "nDCG@10", "RR")
        for model, rows in r.groupby("model")
    }


@case
def llamaindex_dataset(at):
    dataset = read_json(at / "pg_eval_dataset.json")
    qrels = {t: dict.fromkeys(docs, 1.0) for t, docs in dataset["relevant_docs"].items()}
    return scores(qrels, read_json(at / "retrieved_top2.json"), "Success@2", "RR")


@case
def rre_ratings(at):
    qrels = {}
    for topic in read_json(at / "ratings.json")["topics"]:
        for group in topic["query_groups"]:
            for query in group["queries"]:
                grades = {doc: float(value["gain"]) for doc, value in group["relevant_documents"].items()}
                qrels[query["placeholders"]["$query"]] = grades
    return scores(qrels, read_json(at / "solr_top5.json"), "nDCG@10", "P@5")


@case
def ga4_bigquery(at):
    pages, last = [], {}
    events = sorted(read_jsonl(at / "events_20240612.json"), key=lambda event: int(event["event_timestamp"]))
    for event in events:
        params = {p["key"]: next(iter(p["value"].values())) for p in event["event_params"]}
        session = event["user_pseudo_id"], params["ga_session_id"]
        if event["event_name"] == "view_search_results":
            last[session] = {"clicks": [], "results": int(params["results_count"])}
            pages.append(last[session])
        elif event["event_name"] == "select_item":
            last[session]["clicks"].append(int(event["items"][0]["item_list_index"]))
    users = {event["user_pseudo_id"] for event in events}
    return {"events": len(events), "users": len(users)} | log_metrics(pages)


@case
def algolia_events(at):
    events = read_json(at / "insights_events.json")["events"]
    clicks = [e for e in events if e["eventType"] == "click"]
    return {
        "events": len(events),
        "users": len({e["userToken"] for e in events}),
        "clicks": sum(len(e["objectIDs"]) for e in clicks),
        "searches_with_click": len({e["queryID"] for e in clicks}),
        "conversions": sum(e["eventType"] == "conversion" for e in events),
        "MeanClickRank": float(np.mean([p for e in clicks for p in e["positions"]])),
    }


@case
def abtest_table(at):
    result = {}
    for arm, rows in pd.read_csv(at / "experiment_rerank_v2.csv").groupby("variant"):
        searches = int(rows["searches"].sum())
        result[arm] = {
            "users": len(rows),
            "searches": searches,
            "PageCTR": float(rows["searches_with_click"].sum() / searches),
            "ZeroResults": float(rows["zero_result_searches"].sum() / searches),
            "purchases": int(rows["purchases"].sum()),
            "RevenuePerUser": float(rows["revenue"].mean()),
        }
    return result


@case
def ragas_v2(at):
    records = read_jsonl(at / "evaluation_dataset.jsonl")
    got = [(set(r["retrieved_context_ids"]), set(r["reference_context_ids"])) for r in records]
    return answers((r["response"], [r["reference"]]) for r in records) | {
        "context_recall": float(np.mean([len(a & b) / len(b) for a, b in got])),
        "context_precision": float(np.mean([len(a & b) / len(a) for a, b in got])),
    }


@case
def squad_predictions(at):
    predictions = read_json(at / "predictions.json")
    questions = [
        question
        for article in read_json(at / "dev-mini.json")["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    return answers((predictions[q["id"]], [a["text"] for a in q["answers"]]) for q in questions)


@case
def trec_rag(at):
    records = read_jsonl(at / "mygroup-rag-1.jsonl")
    sentences = [sentence for r in records for sentence in r["answer"]]
    lengths = [sum(len(s["text"].split()) for s in r["answer"]) for r in records]
    assert lengths == [r["response_length"] for r in records]
    return {
        "topics": len(records),
        "sentences": len(sentences),
        "sentences_with_citation": sum(bool(s["citations"]) for s in sentences),
        "citations": sum(len(s["citations"]) for s in sentences),
        "references": sum(len(r["references"]) for r in records),
        "AnswerLength": float(np.mean(lengths)),
    }


@case
def langsmith_pandas(at):
    r = table(at / "experiment_results.csv")
    result = answers((a, [b]) for a, b in rows_of(r, "outputs.answer", "reference.answer"))
    return result | {"correctness": float(r["feedback.correctness"].astype(float).mean())}


@case
def trulens_csv(at):
    names = ["Answer Relevance", "Context Relevance", "Groundedness"]
    return {
        version: {"records": len(rows)} | {name: float(rows[name].mean()) for name in names}
        for version, rows in pd.read_csv(at / "records.csv").groupby("app_version")
    }


@case
def haystack_report(at):
    report = read_json(at / "rag_pipeline_run.json")
    result = answers((a, [b]) for a, b in zip(report["predicted_answer"], report["answer"], strict=True))
    return result | {
        "doc_mrr": float(np.mean(report["doc_mrr"])),
        "faithfulness": float(np.mean(report["faithfulness"])),
    }


# Files with a mistake


@case
def header_typo(at):
    q = table(at / "labels.csv").rename(columns={"releveance": "relevance"})
    r = table(at / "search_results.csv")
    return scores(
        qrels_of(rows_of(q, "query_id", "doc_id", "relevance")),
        run_by_rank(rows_of(r, "query_id", "doc_id", "rank")),
        "nDCG@10",
        "P@5",
    )


@case
def ranks_from_zero(at):
    qrels = {user: dict.fromkeys(items, 1.0) for user, items in read_json(at / "relevant_items.json").items()}
    r = table(at / "top5_recommendations.csv")
    return scores(qrels, run_by_rank(rows_of(r, "user_id", "item_id", "rank")), "RR", "R@5")


@case
def null_scores(at):
    q = table(at / "qrels.tsv", sep="\t")
    run = {r["query"]: [hit["_id"] for hit in r["hits"]["hits"]] for r in read_jsonl(at / "sorted_hits.jsonl")}
    return scores(qrels_of(rows_of(q, "query_id", "doc_id", "grade")), run, "nDCG@10", "RR")


@case
def doccano_twice(at):
    once = {(r["query"], r["doc_id"], r["label"][0]) for r in read_jsonl(at / "all.jsonl")}
    grade = {"relevant": 1, "not relevant": 0}
    r = table(at / "chatbot_retrieval.csv")
    result = scores(
        qrels_of((t, d, grade[label]) for t, d, label in sorted(once)),
        run_by_rank(rows_of(r, "query", "doc_id", "rank")),
        "nDCG@10",
        "AP",
    )
    return result | {"pairs": len(once)}


@case
def touche_negative(at):
    qrels = qrels_of((t, d, g) for t, _, d, g in words(at / "touche-task1.qrels"))
    run = run_by_rank((line[0], line[2], line[3]) for line in words(at / "run.txt"))
    return scores(qrels, run, "nDCG@5", "P@5")


@case
def esci_labels(at):
    gain = {"E": 1.0, "S": 0.1, "C": 0.01, "I": 0.0}  # those of the authors of the data
    q = table(at / "examples_us.csv")
    r = table(at / "cross_encoder_ranking.csv")
    qrels = qrels_of((t, d, gain[label]) for t, d, label in rows_of(q, "query_id", "product_id", "esci_label"))
    return scores(qrels, run_by_rank(rows_of(r, "query_id", "product_id", "rank")), "nDCG@10")


@case
def float_ids(at):
    q = table(at / "qrels.csv", index_col=0)
    r = table(at / "model_output.csv", index_col=0)
    r["product_id"] = r["product_id"].str.removesuffix(".0")
    return scores(
        qrels_of(rows_of(q, "query_id", "product_id", "relevance")),
        run_by_rank(rows_of(r, "query_id", "product_id", "rank")),
        "nDCG@10",
        "RR",
    )


@case
def psql_padding(at):
    lines = (at / "judgments.txt").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines[2:] if "|" in line]
    r = table(at / "results.csv")
    return scores(qrels_of(rows), run_by_rank(rows_of(r, "query_id", "doc_id", "rank")), "nDCG@10", "P@5")


@case
def mixed_case_ids(at):
    q = table(at / "ground_truth.csv")
    r = table(at / "api_results.csv")
    r["asin"] = r["asin"].str.lower()
    return scores(
        qrels_of(rows_of(q, "query_id", "asin", "relevance")),
        run_by_rank(rows_of(r, "query_id", "asin", "position")),
        "nDCG@10",
        "R@10",
    )


@case
def gsc_total(at):
    frame = pd.read_csv(at / "Queries.csv")
    total, frame = frame.iloc[-1], frame.iloc[:-1]
    clicks, shown = int(frame["Clicks"].sum()), int(frame["Impressions"].sum())
    assert (clicks, shown) == (total["Clicks"], total["Impressions"])
    return {
        "queries": len(frame),
        "clicks": clicks,
        "impressions": shown,
        "ImpressionCTR": clicks / shown,
        "mean_position": float(np.average(frame["Position"], weights=frame["Impressions"])),
    }


@case
def swapped_columns(at):
    q = table(at / "qrels.csv")
    r = table(at / "run.csv").rename(columns={"query_id": "document_id", "document_id": "query_id"})
    return scores(
        qrels_of(rows_of(q, "query_id", "document_id", "relevance")),
        run_by_rank(rows_of(r, "query_id", "document_id", "rank")),
        "nDCG@10",
        "RR",
    )


@case
def bom_trec_run(at):
    qrels = qrels_of((t, d, g) for t, _, d, g in words(at / "qrels.txt"))
    lines = words(at / "mysystem.run", "utf-8-sig")
    return scores(qrels, run_by_rank((line[0], line[2], line[3]) for line in lines), "nDCG@10", "RR")


@case
def blank_rows(at):
    q = table(at / "Relevance judgments.csv")
    r = table(at / "Search results.csv")
    q, r = q[q["Query"] != ""], r[r["Query"] != ""]
    return scores(
        qrels_of(rows_of(q, "Query", "Document ID", "Grade")),
        run_by_rank(rows_of(r, "Query", "Document ID", "Position")),
        "nDCG@10",
        "P@5",
    )


@case
def seconds_and_millis(at):
    log = table(at / "suchlog.csv", sep=";")
    time = log["zeitstempel"].astype(float)
    log["seconds"] = time.where(time < 1e11, time / 1000)
    pages = {}
    for row in log.sort_values("seconds").to_dict("records"):
        key = row["sitzung"], row["suchbegriff"]
        if row["ereignis"] == "suche":
            pages[key] = {"clicks": [], "results": int(row["treffer"]), "at": row["seconds"]}
        else:
            pages[key]["clicks"].append(row["seconds"] - pages[key]["at"])
    waits = [min(page["clicks"]) for page in pages.values() if page["clicks"]]
    return log_metrics(list(pages.values())) | {
        "sessions": log["sitzung"].nunique(),
        "TimeToFirstClick": float(np.mean(waits)),
    }


@case
def phoenix_cut(at):
    *lines, last = (at / "spans.jsonl").read_text(encoding="utf-8").splitlines()
    assert not last.endswith("}")
    spans = [json.loads(line) for line in lines]
    run = {
        span["attributes.input.value"]: [d["document.id"] for d in span["attributes.retrieval.documents"]]
        for span in spans
        if span["span_kind"] == "RETRIEVER"
    }
    q = table(at / "relevant_docs.csv")
    result = scores(qrels_of(rows_of(q, "question", "document_id", "relevance")), run, "nDCG@10", "R@10")
    return result | {"spans": len(spans)}


@case
def header_delimiter(at):
    q = table(at / "juicios.csv", sep=";", skiprows=1, names=["consulta", "id_documento", "relevancia"])
    r = table(at / "resultados.csv", sep=";")
    return scores(
        qrels_of(rows_of(q, "consulta", "id_documento", "relevancia")),
        run_by_rank(rows_of(r, "consulta", "id_documento", "posición")),
        "nDCG@10",
        "RR",
    )


@case
def percent_scores(at):
    q = table(at / "gold.csv")
    r = table(at / "matches.csv")
    r["match"] = r["match"].str.removesuffix("%")
    return scores(
        qrels_of(rows_of(q, "query", "product", "gold")),
        run_by_score(rows_of(r, "query", "product", "match")),
        "nDCG@10",
        "RR",
    )


@case
def thousands(at):
    q = table(at / "grades.csv")
    r = table(at / "bm25f_scores.csv")
    r["score"] = r["score"].str.replace(",", "")
    return scores(
        qrels_of(rows_of(q, "query_id", "doc_id", "grade")),
        run_by_score(rows_of(r, "query_id", "doc_id", "score")),
        "nDCG@10",
        "RR",
    )


@case
def curly_quotes(at):
    text = (at / "judgments.csv").read_text(encoding="utf-8")
    q = table(
        io.StringIO(text.replace("\N{LEFT DOUBLE QUOTATION MARK}", '"').replace("\N{RIGHT DOUBLE QUOTATION MARK}", '"'))
    )
    return scores(qrels_of(rows_of(q, "query", "doc", "grade")), read_json(at / "results.json"), "nDCG@10", "RR")


@case
def swapped_files(at):
    qrels = qrels_of((t, d, g) for t, _, d, g in words(at / "fire2010_adhoc.txt"))
    run = run_by_rank((line[0], line[2], line[3]) for line in words(at / "ISI_TD_BM25.txt"))
    return scores(qrels, run, "AP", "P@5")


@case
def leading_zeros(at):
    q = table(at / "last_week.csv")
    q["article_id"] = q["article_id"].str.zfill(10)
    run = {
        customer: line.split() for customer, line in rows_of(table(at / "submission.csv"), "customer_id", "prediction")
    }
    return scores(qrels_of(rows_of(q, "customer_id", "article_id", "purchases")), run, "AP@12", "R@10")


@case
def distances(at):
    q = table(at / "qrels.csv")
    r = table(at / "lancedb_results.csv")
    return scores(
        qrels_of(rows_of(q, "query_id", "doc_id", "relevance")),
        run_by_rank(rows_of(r, "query_id", "doc_id", "_distance")),
        "AP",
        "RR",
    )


@case
def msearch_unnamed(at):
    bodies = read_jsonl(at / "searches.ndjson")[1::2]
    responses = read_json(at / "responses.json")["responses"]
    run = {
        body["query"]["multi_match"]["query"]: [hit["_id"] for hit in response["hits"]["hits"]]
        for body, response in zip(bodies, responses, strict=True)
    }
    q = table(at / "judgments.csv")
    return scores(qrels_of(rows_of(q, "query", "doc_id", "rating")), run, "nDCG@10", "RR")


@case
def snowplow_twice(at):
    events = {event["event_id"]: event for event in read_jsonl(at / "enriched.ndjson")}
    pages, last = [], {}
    for event in sorted(events.values(), key=lambda event: event["collector_tstamp"]):
        session = event["domain_sessionid"]
        if event["event_name"] == "site_search":
            found = event["unstruct_event_com_snowplowanalytics_snowplow_site_search_1"]["totalResults"]
            last[session] = {"clicks": [], "results": found}
            pages.append(last[session])
        else:
            last[session]["clicks"].append(event["event_id"])
    return {"events": len(events)} | log_metrics(pages)


@case
def deepeval_null(at):
    records = read_json(at / "20240613_101500.json")
    result = answers((r["actual_output"], [r["expected_output"]]) for r in records)
    return result | {"without_answer": sum(r["actual_output"] is None for r in records)}


@case
def page_ranks(at):
    q = table(at / "judged.csv")
    r = table(at / "scraped.csv")
    r["deep"] = (r["page"].astype(int) - 1) * 3 + r["rank"].astype(int)
    return scores(
        qrels_of(rows_of(q, "query", "url", "grade")), run_by_rank(rows_of(r, "query", "url", "deep")), "nDCG@10", "RR"
    )


@case
def french_nfd(at):
    q = table(at / "jugements.tsv", sep="\t", encoding="utf-8-sig")
    r = table(at / "resultats.tsv", sep="\t")
    r.columns = [unicodedata.normalize("NFC", column) for column in r.columns]
    r["requête"] = [unicodedata.normalize("NFC", text) for text in r["requête"]]
    return scores(
        qrels_of(rows_of(q, "requête", "document", "pertinence")),
        run_by_rank(rows_of(r, "requête", "document", "rang")),
        "nDCG@10",
        "R@10",
    )


@case
def title_rows(at):
    q = table(at / "valutazioni.csv", sep=";", skiprows=3)
    r = table(at / "risultati.csv", sep=";")
    return scores(
        qrels_of(rows_of(q, "ricerca", "prodotto", "voto")),
        run_by_rank(rows_of(r, "ricerca", "prodotto", "posizione")),
        "nDCG@10",
        "RR",
    )


@case
def label_studio_skipped(at):
    tasks = read_json(at / "project-12-at-2024-06-12-09-30-0b1c2d3e.json")
    kept = [(t["data"], a) for t in tasks for a in t["annotations"] if not a["was_cancelled"]]
    qrels = qrels_of((data["query"], data["doc_id"], a["result"][0]["value"]["choices"][0]) for data, a in kept)
    r = table(at / "candidates.csv")
    result = scores(qrels, run_by_score(rows_of(r, "query", "doc_id", "score")), "nDCG@10", "P@5")
    return result | {"pairs": len(kept)}


@case
def ubi_zero_based(at):
    pages = {
        query["query_id"]: {
            "clicks": [],
            "results": len(query["query_response_hit_ids"]),
            "hits": query["query_response_hit_ids"],
        }
        for query in read_jsonl(at / "ubi_queries.ndjson")
    }
    for event in read_jsonl(at / "ubi_events.ndjson"):
        page = pages[event["query_id"]]
        found = page["hits"].index(event["event_attributes"]["object"]["object_id"])
        assert found == event["event_attributes"]["position"]["ordinal"]
        page["clicks"].append(found + 1)
    ranks = [rank for page in pages.values() for rank in page["clicks"]]
    return log_metrics(list(pages.values())) | {"MeanClickRank": float(np.mean(ranks))}


# Comparison


def rounded(value):
    if isinstance(value, dict):
        return {str(name): rounded(part) for name, part in value.items()}
    return round(value, 6) if isinstance(value, float) else value


def main(ids: list[str]) -> int:
    listed = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))["case"]
    if sorted(entry["id"] for entry in listed) != sorted(CASES):
        sys.stdout.write("cases.toml and expected.py do not have the same cases\n")
        return 1
    wrong = 0
    for entry in listed:
        if ids and entry["id"] not in ids:
            continue
        value = rounded(CASES[entry["id"]](FILES / entry["id"]))
        if ids:
            sys.stdout.write(f"{entry['id']}: {json.dumps(value, ensure_ascii=False, indent=2)}\n")
        if value != entry["expected"]:
            wrong += 1
            sys.stdout.write(f"{entry['id']} differs: computed {value}, listed {entry['expected']}\n")
    sys.stdout.write(f"{wrong} cases differ\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
