"""Conventions of propensities: declared by the mapping, by the log, or not at all."""

from __future__ import annotations

import json

import pytest

from judged.errors import InputError
from judged.online import read_log
from judged.online.engine import Database
from judged.online.mixed_lists import METHODS, interleave
from judged.online.readers.draft import draft_mapping
from judged.online.storage import open_stored, store_log

ROWS = "page,user,when,doc,pos,p,clicked\np1,u1,2024-05-01 10:00:00,d7,1,0.5,1\np1,u1,2024-05-01 10:00:00,d9,2,0.5,0\n"
COLUMNS = """rank_base = 1
[file]
format = "csv"
[queries]
rows = "results"
[queries.columns]
query_id = "page"
user_id = "user"
object_id = "doc"
position = "pos"
propensity = "p"
"""


def by_mapping(folder, options):
    (folder / "log.csv").write_text(ROWS)
    (folder / "map.toml").write_text(options + COLUMNS)
    return read_log(folder / "log.csv", mapping=folder / "map.toml")


def ubi(folder, *conventions):
    """Read pages whose attributes declare these conventions; None: no convention."""
    rows = [
        {
            "query_id": f"q{i}", "client_id": "u1", "timestamp": "2026-01-05T10:00:00Z", "user_query": "lamp",
            "query_response_hit_ids": ["a", "b"],
            "query_attributes": {"propensities": [0.5, 0.5]}
            | ({"propensity_convention": convention} if convention else {}),
        }
        for i, convention in enumerate(conventions)
    ]  # fmt: skip
    path = folder / "log.ndjson"
    path.write_text("\n".join(map(json.dumps, rows)))
    return read_log(path)


@pytest.mark.parametrize("convention", ["marginal", "conditional", "independent"])
def test_a_mapping_declares_it(tmp_path, convention):
    assert by_mapping(tmp_path, f'propensity_convention = "{convention}"\n').propensity_convention == convention
    assert by_mapping(tmp_path, "").propensity_convention == ""


@pytest.mark.parametrize("value", ['"joint"', "1", "true"])
def test_a_word_that_is_none_is_refused(tmp_path, value):
    with pytest.raises(InputError, match="propensity_convention"):
        by_mapping(tmp_path, f"propensity_convention = {value}\n")


def test_a_mapping_names_the_column_that_declares_it(tmp_path):
    log = ROWS.replace("page,", "kind,page,").replace("\np1", "\nconditional,p1")
    (tmp_path / "log.csv").write_text(log)
    (tmp_path / "map.toml").write_text('propensity_convention = { path = "kind" }\n' + COLUMNS)
    read = read_log(tmp_path / "log.csv", mapping=tmp_path / "map.toml")
    assert read.propensity_convention == "conditional"
    assert "kind" not in read.attributes


@pytest.mark.parametrize(
    ("conventions", "expected", "rules"),
    [
        ((None, None), "", set()),
        (("conditional", None), "conditional", set()),
        (("marginal", "marginal"), "marginal", set()),
        (("marginal", "conditional"), "", {"mixed-convention"}),
        (("joint",), "", {"mixed-convention"}),
    ],
)
def test_a_log_declares_it_itself(tmp_path, conventions, expected, rules):
    log = ubi(tmp_path, *conventions)
    assert log.propensity_convention == expected
    assert {finding.rule for finding in log.findings} & {"mixed-convention"} == rules
    assert "propensity_convention" not in log.attributes


@pytest.mark.parametrize("method", METHODS)
def test_mixed_lists_declare_it(method):
    assert interleave("abc", "bca", key="k", method=method).attributes()["propensity_convention"] == "conditional"


def test_open_bandit_is_marginal(tmp_path):
    (tmp_path / "log.csv").write_text("timestamp,item_id,position,click,propensity_score\n2020-01-01,x,1,0,0.1\n")
    assert read_log(tmp_path / "log.csv").propensity_convention == "marginal"


def test_it_is_stored_with_the_log(tmp_path):
    store_log(ubi(tmp_path, "marginal"), tmp_path / "folder")
    assert open_stored(tmp_path / "folder", Database()).propensity_convention == "marginal"


def test_a_draft_leaves_it_open(tmp_path):
    (tmp_path / "log.csv").write_text(ROWS.replace(",p,", ",propensity,"))
    lines = draft_mapping(tmp_path / "log.csv").splitlines()
    assert "# propensity_convention = ..." in lines
    assert not any(line.startswith("propensity_convention") for line in lines)
