"""docs/dialects.md: each of our names exists and means what the other tool's name means here."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from judged import MeasureError
from judged.scoring.evaluation.dialects import DIALECTS
from judged.scoring.measures import Measure, parse
from judged.scoring.measures.registry import REGISTRY
from judged.scoring.peers.trec_eval import ALL, expand

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dialects.md"
_CODE = re.compile(r"`([^`]+)`")


@cache
def tables() -> dict[str, list[tuple[str, str]]]:
    """Return the rows of each section's table: their name and ours."""
    tables_by_section: dict[str, list[tuple[str, str]]] = {}
    for section in PAGE.read_text().partition("\n## Names of measures\n")[2].split("\n### ")[1:]:
        title, _, text = section.partition("\n")
        rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
        assert all(len(row) == 2 for row in rows), title
        tables_by_section[title] = [(theirs, ours) for theirs, ours in rows if ours != "judged"]
    return tables_by_section


def names(cell: str) -> list[str]:
    """Return our names in a cell, without words of the grammar and other tools' names."""
    return [name for name in _CODE.findall(cell) if name not in _WORDS]


_NEED_MORE = {"rbp", "err", "trap", "accuracy"}
"""Names that are ours too, but not without a parameter that other tools do not write: they are refused."""

_WORDS = {"beta", "judged trec_eval", "NumRet(rel=1)"}

EVERY = [(tool, theirs, ours) for tool, rows in tables().items() for theirs, ours in rows]


@pytest.mark.parametrize(("tool", "theirs", "ours"), EVERY, ids=lambda value: value[:40])
def test_every_name_is_ours_or_the_reason_stands_there(tool: str, theirs: str, ours: str) -> None:
    if ours.startswith("left out: "):
        assert len(ours) > len("left out: ") + 15, (tool, theirs)
        return
    our_names = names(theirs if ours == "the same names" else ours)
    measures = [parse(name) for name in our_names]
    assert measures, (tool, theirs)
    assert [str(measure) for measure in measures] == our_names  # as we write it ourselves, without defaults


def ours_of(tool: str) -> dict[str, Measure]:
    """Return the measure for each name of a tool that is formatted as code."""
    return {
        name: parse(names(ours)[0])
        for theirs, ours in tables()[tool]
        if not ours.startswith("left out")
        for name in _CODE.findall(theirs)[:1]
    }


def test_trec_eval_means_what_the_drop_in_command_computes() -> None:
    catalog = ours_of("trec_eval 9 and 10, pytrec_eval")
    cutoff_names = ("P", "map_cut", "relative_P", "success", "recall", "ndcg_cut", "unj", "P_avgjg")
    measure_names = [name for name in ALL if name not in (*cutoff_names, "ndcg", "G")]
    lines = expand(*measure_names, *(f"{name}.10" for name in cutoff_names), "G", "ndcg")
    computed = {line.name: line.measure for line in [*lines, *expand("ndcg.1=3,2=9")] if line.measure is not None}
    assert {name: measure for name, measure in computed.items() if name in catalog} == catalog
    roots = {line.name: line.root for line in lines}  # recall levels and factors: one of each kind will do
    covered_roots = {roots[name] for name in catalog if name in roots}
    text = {"runid", "relstring"}
    assert set(roots.values()) - covered_roots == text
    version_9 = {line.name: line.measure for line in expand("11pt_avg", "iprec_at_recall", dialect="trec_eval-9")}
    assert version_9["11pt_avg"] == parse("AP11(rounding=up)")
    assert version_9["iprec_at_recall_0.10"] == parse("IPrec(rounding=up)@0.1")


@pytest.mark.parametrize(
    ("dialect", "tool"),
    [
        ("ranx", "ranx"),
        ("ndeval", "ndeval, pyndeval"),
        ("gdeval", "gdeval"),
        ("beir", "BEIR and MTEB"),
        ("msmarco", "MS MARCO"),
    ],
)
def test_a_dialect_reads_the_tools_names_so(dialect: str, tool: str) -> None:
    catalog = ours_of(tool)
    assert len(catalog) == sum(not ours.startswith("left out") and "`" in theirs for theirs, ours in tables()[tool])
    for theirs, ours in catalog.items():
        assert DIALECTS[dialect].measures(theirs) == (ours,), theirs


def test_the_tools_are_all_there() -> None:
    assert len(tables()) == 14
    assert len(EVERY) > 200
    words = PAGE.read_text()
    for tool in (
        *("trec_eval", "pytrec_eval", "ir_measures", "ranx", "trectools", "cwl_eval", "ndeval", "gdeval"),
        *("compatibility.py", "BEIR", "MTEB", "torchmetrics", "rax", "elinor"),
    ):
        assert tool in words


def test_aliases_mean_the_same_in_the_catalog() -> None:
    """A tool's name that is known here without a dialect is the measure of the catalog."""
    aliases = {alias.lower() for entry in REGISTRY.values() for alias in (entry.name, *entry.aliases)}
    num_compared = 0
    for tool, theirs, ours in EVERY:
        name = (_CODE.findall(theirs) or [""])[0]
        match = re.fullmatch(r"([A-Za-z_-]+?)(@[0-9]+)?", name)
        if (
            match is None
            or match[1].lower() not in aliases
            or ours.startswith("left out")
            or ours == "the same names"
            or match[1].lower() in _NEED_MORE
        ):
            continue
        assert parse(name).entry.name == parse(names(ours)[0]).entry.name, (tool, name)
        num_compared += 1
    assert num_compared > 50
    for name in _NEED_MORE:
        with pytest.raises(MeasureError, match="requires"):
            parse(name)
