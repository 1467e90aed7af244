# Requirements: bm25s PyStemmer scikit-learn numpy
"""Write the runs of the sample collection: eight simple rankers over the documents.

Every ranker reads the same documents and topics and writes one gzipped TREC
file with at most 50 documents per topic, the best first. Documents with score
zero are not returned, so lists can be short. Results are deterministic; scores
are rounded to six decimals, and equal scores are ordered by document id.

    bm25          BM25 over title and text, stop words removed, words stemmed
    bm25_nostem   the same without stemming
    bm25_title    BM25 over the words of the dotted name only
    bm25_prf      bm25 with query expansion from its first five documents
    tfidf         cosine of TF-IDF vectors of words (stemmed)
    tfidf_char    cosine of TF-IDF vectors of character 3- to 5-grams
    lm_dirichlet  query likelihood with Dirichlet smoothing (stemmed)
    rrf           reciprocal rank fusion of bm25 and tfidf_char

Usage: python tools/sample/make_runs.py [--data DIR] [--depth 50]
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import bm25s
import numpy as np
import Stemmer
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

REPO = Path(__file__).resolve().parents[2]
DEFAULT_DATA = REPO / "src" / "judged" / "data" / "sample" / "pydocs"

K1, B = 1.2, 0.75
MU = 60.0  # about twice the mean length of a document, stop words removed
PRF_DOCS, PRF_WORDS, PRF_WEIGHT = 5, 10, 0.3
RRF_K = 60

Scores = np.ndarray
Ranker = Callable[[str], Scores]
Tokenizer = Callable[[str], list[str]]

STEMMER = Stemmer.Stemmer("english")
STOP_TEXT = """
    a about after all also an and any are as at be been before but by can do does
    for from had has have how i if in into is it its like me my no not of on one or
    other so some such that the their them then there these they this to too was we
    were what when where which while who will with would you your
"""
STOP_WORDS = frozenset(STOP_TEXT.split())
WORD = re.compile(r"[a-z0-9]+")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True)
class Collection:
    """Documents as parallel lists."""

    ids: list[str]
    texts: list[str]


def read_docs(path: Path) -> Collection:
    """Return document ids, and their title and text as one string."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        docs = [json.loads(line) for line in lines]
    texts = [f"{doc['title']}\n{doc['text']}" for doc in docs]
    return Collection([doc["doc_id"] for doc in docs], texts)


def read_topics(path: Path) -> dict[str, str]:
    """Return topic texts by id."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {topic["query_id"]: topic["text"] for topic in map(json.loads, lines)}


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without stop words.

    Dotted and camelCase names are split into parts, so that "read text"
    matches `Path.read_text`.
    """
    matches = WORD.findall(CAMEL.sub(" ", text).lower())
    return [word for word in matches if word not in STOP_WORDS]


def stems(text: str) -> list[str]:
    """Return the words of a text, stemmed."""
    return STEMMER.stemWords(words(text))


def bm25_scorer(texts: Sequence[str], tokenize: Tokenizer) -> Callable[[dict[str, float]], Scores]:
    """Return a function from weighted query words to BM25 scores of all documents."""
    index = bm25s.BM25(k1=K1, b=B)
    index.index([tokenize(text) for text in texts], show_progress=False)

    @cache
    def word_scores(word: str) -> Scores:
        # bm25s raises an error for words outside its vocabulary.
        if word not in index.vocab_dict:
            return np.zeros(len(texts))
        return index.get_scores([word]).astype(np.float64)

    def score(query: dict[str, float]) -> Scores:
        total = np.zeros(len(texts))
        for word in sorted(query):
            total += query[word] * word_scores(word)
        return total

    return score


def bm25(texts: Sequence[str], tokenize: Tokenizer) -> Ranker:
    """Return a plain BM25 ranker."""
    score = bm25_scorer(texts, tokenize)
    return lambda query: score(dict(Counter(tokenize(query))))


def bm25_prf(texts: Sequence[str], tokenize: Tokenizer) -> Ranker:
    """Return BM25 with Rocchio expansion: the first documents count as relevant.

    Expansion words have the highest TF-IDF weights in the centroid of these documents.
    """
    score = bm25_scorer(texts, tokenize)
    counts = [Counter(tokenize(text)) for text in texts]
    frequency = Counter(word for count in counts for word in count)
    idf = {word: float(np.log(len(texts) / n)) for word, n in frequency.items()}

    def centroid(best: Sequence[int]) -> dict[str, float]:
        total: dict[str, float] = {}
        for doc in best:
            for word, n in counts[doc].items():
                weight = (1 + np.log(n)) * idf[word] / len(best)
                total[word] = total.get(word, 0.0) + float(weight)
        selected = sorted(total, key=lambda word: (-total[word], word))[:PRF_WORDS]
        top = total[selected[0]] if selected else 1.0
        return {word: total[word] / top for word in selected}

    def rank(text: str) -> Scores:
        query: dict[str, float] = dict(Counter(tokenize(text)))
        first = score(query)
        best = [doc for doc in np.argsort(-first, kind="stable")[:PRF_DOCS] if first[doc] > 0]
        for word, weight in centroid(best).items() if best else ():
            query[word] = query.get(word, 0.0) + PRF_WEIGHT * weight
        return score(query)

    return rank


def tfidf(texts: Sequence[str], vectorizer: TfidfVectorizer) -> Ranker:
    """Return a ranker by the cosine of TF-IDF vectors."""
    matrix = vectorizer.fit_transform(texts)

    def rank(query: str) -> Scores:
        vector = vectorizer.transform([query])
        return np.asarray((matrix @ vector.T).todense()).ravel()

    return rank


def lm_dirichlet(texts: Sequence[str], tokenize: Tokenizer, mu: float = MU) -> Ranker:
    """Return query likelihood with Dirichlet smoothing, zero without a match.

    sum over query words of log(1 + tf / (mu * p)) + |q| * log(mu / (mu + |d|)),
    where p is the share of the word in the collection. Documents without query
    words have score zero and are not returned. Other sums can be negative, so
    all are shifted above zero, which keeps their order.
    """
    tokens = [tokenize(text) for text in texts]
    vocabulary = {word: n for n, word in enumerate(sorted({w for t in tokens for w in t}))}
    rows = np.repeat(np.arange(len(tokens)), [len(t) for t in tokens])
    columns = np.array([vocabulary[word] for t in tokens for word in t])
    shape = (len(tokens), len(vocabulary))
    counts = csr_matrix((np.ones(len(columns)), (rows, columns)), shape=shape).tocsc()
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    share = np.asarray(counts.sum(axis=0)).ravel() / lengths.sum()

    def rank(query: str) -> Scores:
        query_columns = [vocabulary[word] for word in tokenize(query) if word in vocabulary]
        total = np.zeros(len(tokens))
        for word in query_columns:
            frequency = counts[:, [word]].toarray().ravel()
            total += np.log1p(frequency / (mu * share[word]))
        matched = total > 0
        if not matched.any():
            return total
        total += len(query_columns) * np.log(mu / (mu + lengths))
        lift = max(0.0, 0.000001 - float(total[matched].min()))
        return np.where(matched, total + lift, 0.0)

    return rank


def top(scores: Scores, ids: Sequence[str], depth: int) -> list[tuple[str, float]]:
    """Return the best documents: rounded score first, then document id; no zeros."""
    rounded = np.round(scores, 6)
    # ids are sorted, so a stable sort by score leaves ties in the order of ids
    order = np.argsort(-rounded, kind="stable")[:depth]
    return [(ids[doc], float(rounded[doc])) for doc in order if rounded[doc] > 0]


def fuse(lists: Sequence[list[tuple[str, float]]], depth: int) -> list[tuple[str, float]]:
    """Fuse ranked lists by reciprocal rank."""
    total: dict[str, float] = {}
    for ranked in lists:
        for rank, (doc_id, _) in enumerate(ranked, start=1):
            total[doc_id] = total.get(doc_id, 0.0) + 1.0 / (RRF_K + rank)
    rounded = {doc_id: round(score, 6) for doc_id, score in total.items()}
    return sorted(rounded.items(), key=lambda item: (-item[1], item[0]))[:depth]


def write_run(path: Path, ranking: dict[str, list[tuple[str, float]]], name: str) -> None:
    """Write one TREC run, gzipped with a fixed header."""
    lines = [
        f"{topic} Q0 {doc_id} {rank} {score:.6f} {name}\n"
        for topic, ranked in sorted(ranking.items())
        for rank, (doc_id, score) in enumerate(ranked, start=1)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(lines).encode("utf-8"), compresslevel=9, mtime=0))


def make_rankers(docs: Collection) -> dict[str, Ranker]:
    """Return all rankers that score documents themselves."""
    word_vectors = TfidfVectorizer(analyzer=stems, sublinear_tf=True)
    char_vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    return {
        "bm25": bm25(docs.texts, stems),
        "bm25_nostem": bm25(docs.texts, words),
        "bm25_title": bm25(docs.ids, stems),
        "bm25_prf": bm25_prf(docs.texts, stems),
        "tfidf": tfidf(docs.texts, word_vectors),
        "tfidf_char": tfidf(docs.texts, char_vectors),
        "lm_dirichlet": lm_dirichlet(docs.texts, stems),
    }


def main() -> None:
    """Write every run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--depth", type=int, default=50)
    args = parser.parse_args()
    docs = read_docs(args.data / "docs.jsonl.gz")
    topics = read_topics(args.data / "queries.jsonl")
    runs = {
        name: {topic: top(rank(text), docs.ids, args.depth) for topic, text in topics.items()}
        for name, rank in make_rankers(docs).items()
    }
    runs["rrf"] = {topic: fuse([runs["bm25"][topic], runs["tfidf_char"][topic]], args.depth) for topic in topics}
    for name, ranking in runs.items():
        write_run(args.data / "runs" / f"{name}.run.gz", ranking, name)
        rows = sum(len(ranked) for ranked in ranking.values())
        print(f"{name}: {sum(map(bool, ranking.values()))} topics, {rows} rows")


if __name__ == "__main__":
    main()
