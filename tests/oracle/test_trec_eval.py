"""Every real run against what trec_eval 10.0-rc3 printed (``-q -m all_trec``), to the last digit.

``.c`` files were made with ``-c``, ``.l2`` files with ``-l 2``; v9.0.8 files are not used here.
"""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import pytest

import judged
from judged import Qrels, Run
from shared_data import SHARED, needs_shared

CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
QRELS = {
    "robust03": "robust03_qrels.txt",
    "dl19_passage": None,
    "codec": None,
    "cranfield": "cranfield.graded.qrels",
    "cisi": None,
    "cacm": None,
    "web2012": None,
}
FOLDER = {"d100": "runs_d100", "full": "runs_fulldepth_judged", "unmodified": "runs_unmodified", "": "runs"}


def names(rel: int) -> dict[str, str]:
    """Give our name for each measure that the expected files hold and we have."""
    level, inside = ("", "") if rel == 1 else (f"(rel={rel})", f"rel={rel}")
    table = {
        "map": f"AP{level}",
        "recip_rank": f"RR{level}",
        "Rprec": f"Rprec{level}",
        "bpref": f"Bpref{level}",
        "set_P": f"SetP{level}",
        "set_recall": f"SetR{level}",
        "set_F": f"SetF({inside})" if inside else "SetF",
        "ndcg": "nDCG",
        "num_ret": "NumRet",
        "num_rel": f"NumRel{level}",
        "num_rel_ret": f"NumRelRet{level}",
    }
    for k in CUTS:
        table |= {f"P_{k}": f"P{level}@{k}", f"recall_{k}": f"R{level}@{k}"}
        table |= {f"ndcg_cut_{k}": f"nDCG@{k}", f"map_cut_{k}": f"AP{level}@{k}"}
    table |= {f"success_{k}": f"Success{level}@{k}" for k in (1, 5, 10)}
    table |= {f"unj_{k}": f"Unjudged@{k}" for k in (5, 10, 20)}
    return table


def expected_files() -> list[Path]:
    files = [path for name in QRELS for path in sorted((SHARED / name / "expected").glob("*.trec_eval.txt*"))]
    return [path for path in files if ".v9.0.8." not in path.name]


def pair_of(expected: Path) -> tuple[Path, Path, int, bool]:
    """Find the qrels, the run, the level and -c for a file of expected numbers."""
    folder = expected.parents[1]
    stem = expected.name.removesuffix(".gz").removesuffix(".trec_eval.txt")
    level, complete, where = 1, False, ""
    while True:
        for suffix in ("l2", "c", "d100", "full", "unmodified"):
            if stem.endswith(f".{suffix}") and not (folder / "runs" / f"{stem}.run.gz").exists():
                stem = stem.removesuffix(f".{suffix}")
                level = 2 if suffix == "l2" else level
                complete = complete or suffix == "c"
                where = suffix if suffix in FOLDER else where
                break
        else:
            break
    runs = folder / FOLDER[where]
    run = next(path for path in runs.iterdir() if path.name.removesuffix(".gz").removesuffix(".run") == stem)
    chosen = QRELS[folder.name]
    qrels = folder / "qrels" / chosen if chosen else only_qrels(folder)
    return qrels, run, level, complete


def only_qrels(folder: Path) -> Path:
    found = [path for path in sorted((folder / "qrels").iterdir()) if "binary" not in path.name]
    assert len(found) == 1, found
    return found[0]


def read(expected: Path) -> dict[tuple[str, str], str]:
    opened = gzip.open if expected.suffix == ".gz" else open
    with opened(expected, "rt") as lines:
        return {(fields[0].strip(), fields[1]): fields[2].strip() for fields in (line.split("\t") for line in lines)}


@needs_shared
@pytest.mark.parametrize("expected", expected_files(), ids=lambda path: f"{path.parents[1].name}-{path.name}")
def test_every_number_as_printed(expected: Path) -> None:
    qrels_path, run_path, level, complete = pair_of(expected)
    printed = read(expected)
    table = names(level)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", judged.JudgedWarning)
        scores = judged.evaluate(
            Qrels.read(qrels_path), Run.scan(run_path), list(table.values()), topics="qrels" if complete else "both"
        )
    per_topic, means = scores.per_topic()[scores.run_names[0]], scores.aggregate()[scores.run_names[0]]
    checked = 0
    wrong: list[str] = []
    for (name, topic), value in printed.items():
        ours = table.get(name)
        if ours is None or (name == "num_rel" and topic == "all" and complete and level == 2):
            continue  # trec_eval -c ignores -l in this one line
        number = means[ours] if topic == "all" else per_topic[ours][topic]
        shown = f"{number:.0f}" if name.startswith("num_") else f"{number:.4f}"
        checked += 1
        if shown != value:
            wrong.append(f"{name} {topic}: {value} expected, {shown} computed")
    assert not wrong, wrong[:10]
    assert checked > 40 * len(scores.query_ids)


@needs_shared
def test_nothing_is_left_out() -> None:
    assert len(expected_files()) >= 150
