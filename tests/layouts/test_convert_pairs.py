"""Qrels and runs that are converted from one format to another give the same scores, bit for bit."""

from __future__ import annotations

import re
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import judged
from judged.data.convert_files import convert
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.write import write_qrels, write_run
from judged.errors import InputError, JudgedWarning

FORMATS = ("trec", "csv", "tsv", "jsonl", "parquet", "beir")
SUFFIXES = {"trec": "txt", "beir": "json"}
MEASURES = ["nDCG@10", "AP", "RR", "P@5", "Bpref"]
QUIET = settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.generate],
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
plain = st.text("abcXYZ0189._-", min_size=1, max_size=6)
odd = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
ids = st.one_of(plain, odd, st.sampled_from(["=1+1", "007", "NA", "a b", 'q"uote', "x,y", "#1", "é", "null", "'7"]))
scores = st.floats(allow_nan=False)
grades = st.one_of(st.integers(-2, 4), st.floats(-2, 4, allow_nan=False))


def collection(ids: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[Any, Any]]:
    """Return a strategy for qrels and a run, with the same topics."""
    docs = st.lists(ids, min_size=3, max_size=8, unique=True)
    return st.lists(ids, min_size=1, max_size=3, unique=True).flatmap(
        lambda queries: st.tuples(
            *(
                docs.flatmap(
                    lambda docs: st.tuples(
                        st.fixed_dictionaries(dict.fromkeys(docs, grades)),
                        st.fixed_dictionaries(dict.fromkeys(docs[1:], scores) | {docs[0]: st.just(0.1 + 2**-56)}),
                    )
                )
                for _ in queries
            )
        ).map(
            lambda pairs: (
                dict(zip(queries, (qrels for qrels, _ in pairs), strict=True)),
                dict(zip(queries, (run for _, run in pairs), strict=True)),
            )
        )
    )


def is_plain(mapping: dict[str, dict[str, Any]]) -> bool:
    return all(re.fullmatch(r"[\w.-]+", text, re.ASCII) for topic, docs in mapping.items() for text in (topic, *docs))


def evaluated(qrels: Any, run: Any) -> str:
    """Return the scores of each topic as text, so that NaN equals NaN and 0.0 differs from -0.0."""
    (scores,) = judged.evaluate(qrels, run, MEASURES).per_topic().values()
    return repr({measure: sorted(topics.items()) for measure, topics in sorted(scores.items())})


def through(kind: str, mapping: Any, first: str, second: str, folder: Path) -> Path:
    """Write a mapping in the first format, and convert the file to the second format."""
    path = folder / f"{kind}.jsonl"
    if kind == "qrels":
        write_qrels(Qrels.of(mapping), path, "jsonl")
    else:
        write_run(Run.of(mapping), path, "jsonl")
    for to in (first, second):
        suffix = "tsv" if (to, kind) == ("beir", "qrels") else SUFFIXES.get(to, to)
        out = folder / f"{kind}.{to}.{suffix}"
        convert(path, out, to=to, kind=kind)  # pyright: ignore[reportArgumentType]
        path = out
    return path


@pytest.mark.parametrize(("first", "second"), list(product(FORMATS, FORMATS)))
@QUIET
@given(data=st.one_of(collection(plain), collection(ids)))
def test_scores_stay_the_same(first: str, second: str, data: tuple[Any, Any], tmp_path: Path) -> None:
    qrels, run = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        try:
            files = [through(kind, table, first, second, tmp_path) for kind, table in (("qrels", qrels), ("run", run))]
            read = Qrels.read(files[0]), Run.read(files[1])
            _ = read[0].table, read[1].table
        except InputError:
            assert not is_plain(qrels) or not is_plain(run)
            assume(False)
        assert evaluated(*read) == evaluated(qrels, run)


@pytest.mark.parametrize("doc", [" d", "d ", "a\tb", "a\nb", "d\f"])
def test_ids_that_beir_qrels_cannot_hold_are_refused(doc: str, tmp_path: Path) -> None:
    write_qrels(Qrels.of({"q": {doc: 1}}), tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="this format cannot store"):
        convert(tmp_path / "a.jsonl", tmp_path / "test.tsv", to="beir", kind="qrels")
