"""Invalid mappings, and files that do not fit a mapping."""

from __future__ import annotations

import pytest

from judged.errors import InputError
from judged.online.readers.mapping_file import mapping_text, packaged_mappings, read_mapping
from judged.online.readers.paths import parse_path
from online.readers.raw_logs import read_mapped, rows

GOOD = '[queries.columns]\nquery_id = "id"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = ", "TOML"),
        ("note = 'nothing'", r"neither \[queries\] nor \[events\]"),
        (GOOD + "[even]\na = 1", "unknown key 'even'.*did you mean 'events'"),
        ("[queries.columns]\nquery = 'q'\nsesion_id = 's'", "unknown key 'sesion_id'.*did you mean 'session_id'"),
        ("[queries.columns]\nquery_id = { pth = 'a' }", "unknown key 'pth'.*did you mean 'path'"),
        ("[queries.columns]\nquery_id = { path = 'a', value = 1 }", "exactly one of path, any, join, last, and value"),
        ("[queries.columns]\nquery_id = { any = [] }", "any is empty"),
        ("[queries.columns]\nquery_id = { any = 'a' }", "must be a list of texts"),
        ("[queries.columns]\nquery_id = 'a[].b[]'", "goes through nested lists"),
        ("[queries.columns]\nquery_id = 'a[]'", "leads to a list"),
        ("[queries.columns]\nquery_id = { join = ['a[]', 'b'] }", "leads to a list"),
        ("[queries]\nwhere = { 'a[].b' = 1 }", "leads to a list"),
        ("[queries.columns]\nquery_id = 'a['", "syntax error"),
        ("[queries.columns]\nquery_id = ''", "is empty"),
        ("[queries.columns]\nquery_id = 5", "is not a table"),
        ("[queries.columns]\ntime = { path = 't', format = 'second' }", "did you mean 'seconds'"),
        ("[queries.columns]\nlatency = { path = 't', unit = 'minutes' }", "unit is 'minutes'"),
        ("[queries.columns]\nquery_id = { path = 't', filled = 1 }", "write true or false"),
        ("[queries]\nrows = 'result'", "did you mean 'results'"),
        (
            "rank_base = 1\n[queries]\nrows = 'results'\ncolumns = { query_id = 'a' }",
            "must have 'object_id'",
        ),
        ("[queries]\nrows = 'results'\ncolumns = { query_id = 'a', object_id = 'b', position = 'c' }", "rank_base"),
        ("rank_base = 2\n" + GOOD, "rank_base is 2"),
        ("rank_base = true\n" + GOOD, "rank_base is True"),
        ("[events.columns]\nobject_id = 'a'", "must have 'action'"),
        ("[actions]\na = 'clik'\n" + GOOD, "the action 'a' is 'clik'.*did you mean 'click'"),
        ("[file]\nformat = 'xml'\n" + GOOD, "format is 'xml'"),
        ("[file]\nseparator = '||'\n" + GOOD, "write one character"),
        ("[file]\ncolumns = ['a', 'a']\n" + GOOD, "duplicate name"),
        (GOOD + "[queries.attributes]\nquery = 'a'", "has the same name as a column"),
        (GOOD + "[queries.attributes]\nA = 'a'\na = 'b'", "differ only in upper and lower case"),
        (
            GOOD + "[queries.attributes]\n" + "\n".join(f"a{n} = 'id'" for n in range(51)),
            "at most 50 attributes, got 51",
        ),
        (
            GOOD + "time = { path = 't', format = 'order' }\n[events.columns]\naction = 'a'",
            "only some sections.*'order'",
        ),
        (GOOD + "time = { path = 'id', format = '%Q' }", "invalid time format '%Q'"),
        ("[queries.columns]\nquery_id = 'idd'", "no record has 'idd'.*did you mean 'id'.*optional = true"),
        ("[queries.columns]\nquery_id = 'deep.keyy'", "no record has 'deep.keyy'.*did you mean 'deep.key'"),
        ("[queries]\nwhere = { kind = 'x' }\n[queries.columns]\nquery_id = 'id'", "no record has 'kind'"),
        ("[queries]\nfiles = 'b*'\n" + GOOD, r"no file matches the pattern 'b\*'"),
        ("[queries]\nwhere = { id = { nott = 'x' } }", "unknown key 'nott'"),
    ],
)
def test_mappings_that_are_wrong_are_refused_with_what_is_possible(tmp_path, text, problem):
    with pytest.raises(InputError, match=f"(?s){problem}") as caught:
        read_mapped(tmp_path, text, {"a.jsonl": [{"id": 1, "deep": {"key": 1}}]})
    assert caught.value.path.endswith("log.toml")
    assert caught.value.fix


def test_an_optional_column_may_be_absent_and_one_of_any_suffices(tmp_path):
    text = '[queries.columns]\nquery_id = { any = ["no", "id"] }\nquery = { path = "gone", optional = true }\n'
    assert rows(read_mapped(tmp_path, text, {"a.jsonl": [{"id": 1}]}).queries)[0]["query_id"] == "1"


@pytest.mark.parametrize(
    ("files", "text", "problem"),
    [
        ({"a.txt": "x"}, GOOD, "unknown file format"),
        ({"a.csv": "id,id\n1,2\n"}, GOOD, r"a\.csv:1: the header has a duplicate column name"),
        ({"a.csv": "1\n"}, "[file]\nheader = false\n" + GOOD, "columns have no names"),
        ({}, GOOD, "no log files"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path, files, text, problem):
    with pytest.raises(InputError, match=problem):
        read_mapped(tmp_path, text, files)


def test_mappings_are_files_or_come_with_judged(tmp_path):
    assert packaged_mappings() == ("algolia", "ga4", "graphcm", "open-bandit", "snowplow", "ubi", "usql", "wikimedia")
    for name in packaged_mappings():
        assert read_mapping(name).sections
        tried = name in {"graphcm", "open-bandit", "ubi", "usql"}
        assert ("NOT TRIED ON REAL LOGS" in mapping_text(name)[0]) != tried
    with pytest.raises(InputError, match=r"graphcn: it cannot be read.*graphcm"):
        read_mapping("graphcn")
    (tmp_path / "latin.toml").write_bytes(b"note = '\xe9'")
    with pytest.raises(InputError, match="UTF-8"):
        read_mapping(tmp_path / "latin.toml")


@pytest.mark.parametrize("path", ["a.", ".a", "a..b", "a]", "a[x]", 'a"b', "a\\", "a[].b[k=v]"])
def test_paths_that_make_no_sense(path):
    with pytest.raises(ValueError, match=r".+"):
        parse_path(path)
