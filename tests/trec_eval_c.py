"""The measures of trec_eval 9.0.8 that pytrec_eval has compiled in and does not offer: preferences, assessors.

They are called through their own C functions, on files, as trec_eval's main program calls them.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_long, c_void_p
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_EVERY = 2**62
_TOPICS = count()  # the C code remembers what it last made of a topic's name: no name may come twice

PREFERENCES = (
    *("prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret"),
    *("prefs_simp", "prefs_simp_ret", "prefs_simp_imp", "prefs_pair", "prefs_pair_ret", "prefs_pair_imp"),
    *("prefs_avgjg", "prefs_avgjg_ret", "prefs_avgjg_imp", "prefs_avgjg_Rnonrel", "prefs_avgjg_Rnonrel_ret"),
)
ASSESSORS = ("map_avgjg", "P_avgjg", "Rprec_mult_avgjg")


class _Settings(Structure):
    _fields_ = (
        *((name, c_long) for name in ("query", "summary", "debug")),
        ("debug_query", c_char_p),
        *((name, c_long) for name in ("relation", "complete", "judged_only", "docs", "level", "depth")),
        *((name, c_char_p) for name in ("rel_format", "results_format")),
        ("zscore", c_long),
        ("arguments", c_void_p),
    )


class _Value(Structure):
    _fields_ = (("name", c_char_p), ("value", c_double))


class _Values(Structure):
    _fields_ = (
        ("qid", c_char_p),
        ("queries", c_long),
        ("values", POINTER(_Value)),
        ("used", c_long),
        ("reserved", c_long),
    )


class _Judgments(Structure):
    _fields_ = (("qid", c_char_p), ("format", c_char_p), ("info", c_void_p))


class _Results(Structure):
    _fields_ = (("qid", c_char_p), ("run_id", c_char_p), ("format", c_char_p), ("info", c_void_p))


class _AllJudgments(Structure):
    _fields_ = (("number", c_long), ("reserved", c_long), ("each", POINTER(_Judgments)))


class _AllResults(Structure):
    _fields_ = (("number", c_long), ("reserved", c_long), ("each", POINTER(_Results)))


class _Measure(Structure):
    _fields_ = (
        ("name", c_char_p),
        ("explanation", c_char_p),
        *((name, c_void_p) for name in ("start", "calculate", "add", "average", "show", "end", "parameters")),
        ("first", c_long),
    )


_START = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, c_void_p, c_void_p)
_CALCULATE = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)


@cache
def _library() -> Any:
    import pytest  # the benchmark does not need pytest

    extension = pytest.importorskip("pytrec_eval_ext")
    library = ctypes.CDLL(extension.__file__)
    if not hasattr(library, "form_prefs_counts"):
        pytest.skip("this build of pytrec_eval hides the functions of trec_eval")
    return library


def topic_name(topic: str) -> str:
    """Return a topic name that the C code has not seen."""
    return f"{next(_TOPICS)}.{topic}"


def run_file(path: Path, run: Iterable[tuple[str, str, float]]) -> Path:
    """Write a run."""
    path.write_text("".join(f"{query} Q0 {doc} 0 {score!r} x\n" for query, doc, score in run), "utf-8")
    return path


def trec_eval(
    judgments: Path, run: Path, kind: str, names: Iterable[str], *, level: int = 1, judged_only: bool = False
) -> dict[str, dict[str, float]]:
    """Evaluate as ``trec_eval -q -R kind -m ...`` does: topic, then name, then value.

    Topics must bear names of `topic_name`.
    """
    return evaluated(_library(), judgments, run, kind, names, level=level, judged_only=judged_only)


def evaluated(
    library: Any,
    judgments: Path,
    run: Path,
    kind: str,
    names: Iterable[str],
    *,
    level: int = 1,
    judged_only: bool = False,
) -> dict[str, dict[str, float]]:
    """Do the same with the compiled library that is given."""
    settings = _Settings(0, 1, 0, None, 1, 0, int(judged_only), 0, level, _EVERY, kind.encode(), b"trec_results", 0, 0)
    rels, results = _AllJudgments(), _AllResults()
    assert library[f"te_get_{kind}"](byref(settings), str(judgments).encode(), byref(rels)) == 1
    assert library["te_get_trec_results"](byref(settings), str(run).encode(), byref(results)) == 1
    measures = [_Measure.in_dll(library, f"te_meas_{name}") for name in names]
    values = _Values(b"all", 0, None, 0, 0)
    for measure in measures:
        assert (
            _START(measure.start)(ctypes.addressof(settings), ctypes.addressof(measure), ctypes.addressof(values)) == 1
        )
    judged = {rels.each[i].qid: rels.each[i] for i in range(rels.number)}
    scores: dict[str, dict[str, float]] = {}
    for i in range(results.number):
        topic = results.each[i].qid
        if topic not in judged:
            continue
        for index in range(values.used):
            values.values[index].value = 0.0
        inputs = [settings, judged[topic], results.each[i]]
        for measure in measures:
            addresses = [ctypes.addressof(part) for part in (*inputs, measure, values)]
            assert _CALCULATE(measure.calculate)(*addresses) == 1, (topic, measure.name)
        scores[topic.decode()] = {
            values.values[index].name.decode(): values.values[index].value for index in range(values.used)
        }
    return scores
