"""Readers, each with the intact files that are damaged for it."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fuzz import originals, plain
from judged import InputError, Qrels, Run, Scores, Texts, Topics, apply_review, evaluate, slice_topics
from judged.data import check_qrels, check_run, sample
from judged.data.attributes import Attributes
from judged.data.documents import Documents
from judged.diagnosis.gates.config_file import read_config
from judged.diagnosis.gates.guardrails import numbers_by_run
from judged.diagnosis.tradeoff.tradeoff import Costs
from judged.scoring.compat.trec_eval.options import open_run, read_preferences, read_qrels

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from fuzz.originals import Original


class Reader(NamedTuple):
    """Function that reads a file and uses its complete content, with intact files."""

    name: str
    read: Callable[[Path], object]
    originals: list[Original]
    make: Callable[[Random], bytes] | None = None  # makes a case of another kind than damaged bytes


class WrongError(Exception):
    """Raised if the result of a reader differs from the content of the file."""


def readers(folder: Path) -> list[Reader]:
    """Return all readers; `folder` is for temporary files."""
    judged_sample = sample.qrels()
    some = judged_sample.over(set(judged_sample.topics[:8]))
    topic_attributes = Attributes.of(
        {f"t{i:02}": {"words": i, "class": "howto", "fresh": i > 4, "length": 2.5, "text": "how"} for i in range(9)}
    )
    trec_qrels, trec_runs, attributes = (
        originals.trec_qrels(),
        originals.trec_runs(),
        originals.tables(originals.facts("query_id")),
    )
    preferences = originals.preferences()
    all_qrels, all_runs = [*trec_qrels[:2], *originals.qrels()], [*trec_runs[:2], *originals.runs()]
    return [
        Reader("qrels in TREC's form", partial(_same_rows, "qrels"), trec_qrels),
        Reader("run in TREC's form", partial(_same_rows, "run"), trec_runs),
        Reader("qrels", _qrels, all_qrels),
        Reader("run", lambda path: evaluate(some, Run.scan(path), ["nDCG@10", "RR"]).aggregate(), all_runs),
        Reader("qrels, format named", partial(_as_other, Qrels.read), all_qrels),
        Reader("run, format named", partial(_as_other, Run.read), all_runs),
        Reader("qrels, checked", _checked_qrels, all_qrels),
        Reader("run, checked", partial(check_run, qrels=some), all_runs),
        Reader("preferences", lambda path: Qrels.read(path, format="prefs").aspects, preferences),
        Reader("trec_eval's qrels", lambda path: read_qrels(str(path)).index, trec_qrels),
        Reader("trec_eval's run", lambda path: open_run(str(path)).table, trec_runs),
        Reader("trec_eval's preferences", lambda path: read_preferences(str(path), "prefs").aspects, preferences),
        Reader("scores", _scores, originals.scores(folder)),
        Reader("topics", lambda path: repr(Topics.read(path)), originals.topics()),
        Reader("attributes", lambda path: repr(Attributes.read(path)), attributes),
        Reader("documents", lambda path: repr(Documents.read(path)), originals.tables(originals.facts("doc_id"))),
        Reader("texts", Texts.read, originals.documents()),
        Reader("texts of some", lambda path: Texts.read(path, ["t01", "t07", "d1"]), originals.documents()),
        Reader("costs", Costs.of, originals.costs()),
        Reader("numbers by run", lambda path: numbers_by_run(path, "latency_ms"), originals.costs()),
        Reader("reviewed list", partial(apply_review, judged_sample), originals.reviews()),
        Reader("gate", read_config, originals.gates()),
        Reader("slices", lambda path: repr(slice_topics(topic_attributes, slices=path)), originals.slices()),
    ]  # fmt: skip


def _same_rows(kind: str, path: Path) -> None:
    """Read a TREC file; an independent parser must return the same rows."""
    table = Qrels.read(path).table if kind == "qrels" else Run.read(path).table
    name = "relevance" if kind == "qrels" else "score"
    if path.read_bytes()[:2] in {b"\x1f\x8b", b"BZ"} or name not in table.column_names:
        return
    expected = list(zip(*(table[column].to_pylist() for column in ("query_id", "doc_id", name)), strict=True))
    if not any(expected == rows for rows in plain.rows(path.read_bytes(), kind)):
        raise WrongError(f"{len(expected)} rows, which are not those of the file")


def _qrels(path: Path) -> None:
    qrels = Qrels.read(path)
    repr(qrels)
    qrels.aspects  # noqa: B018 - it is made when it is asked for


def _as_other(read: Callable[..., Any], path: Path) -> None:
    """Read as a format that the file need not have: one for each length of the file."""
    formats = ("trec", "tsv", "csv", "msmarco", "json", "jsonl", "parquet", "arrow", "set", "prefs")
    read(path, format=formats[path.stat().st_size % len(formats)])


def _checked_qrels(path: Path) -> None:
    """Check qrels: errors are found where reading refuses, and only there."""
    errors = [finding for finding in check_qrels(path) if finding.severity == "error"]
    try:
        Qrels.read(path)
    except InputError:
        if not errors:
            raise WrongError("refused, and the check finds no error") from None
    else:
        if errors:
            raise WrongError(f"read, and the check finds {errors[0].code}")


def _scores(path: Path) -> None:
    scores = Scores.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        repr(scores)
        scores.summary(ci="none", per_topic=True).to_dict()
        scores.to_arrow()
