"""Parsing of gate configurations, and the error message of each mistake."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from judged.comparison.slicing.topic_slices import read_slices
from judged.diagnosis.gates import Check, GateConfig, Guardrail, config_of, parse_config, read_config
from judged.errors import InputError

FULL_CONFIG = '''\
attributes = "topics.csv"

[gate]  # how sure
alpha = 0.1
strict = true
test = "t"
correction = "bonferroni"
resamples = 5000
seed = 3
power = 0.9
topics = "both"
ties = "stable"
depth = 50
dialect = "trec_eval-10"

[[slice]]
name = "long"
expression = """
words > 5
"""
min_topics = 12
owner = "search team"

[[check]]
measure = "ndcg_cut_10"
margin = 0.01

[[check]]   # of the slice
measure = "AP"
margin_relative = 0.02
slice = "long"
min_topics = 5
strict = false

[[guardrail]]
measure = "Judged@10"
at_least = 0.9
at_most_below_baseline = 0.05

[[guardrail]]
table = "latency.csv"
column = "ms"
quantile = 0.95
at_most = 200
at_most_ratio = 1.1

[[guardrail]]
missing_topics = 0
'''


def test_every_key_is_read_with_its_line() -> None:
    config = parse_config(FULL_CONFIG, path="gate.toml")
    assert (config.attributes, config.alpha, config.strict, config.test) == ("topics.csv", 0.1, True, "t")
    assert (config.correction, config.resamples, config.seed, config.power) == ("bonferroni", 5000, 3, 0.9)
    assert (config.topics, config.ties, config.depth, config.dialect) == ("both", "stable", 50, "trec_eval-10")
    (topic_slice,) = config.slices
    assert (topic_slice.name, topic_slice.expression.strip(), topic_slice.min_topics, topic_slice.owner) == (
        "long",
        "words > 5",
        12,
        "search team",
    )
    first, second = config.checks
    lines = FULL_CONFIG.splitlines()
    assert first == Check("ndcg_cut_10", margin=0.01, line=lines.index("[[check]]") + 1)
    assert second.line == lines.index("[[check]]   # of the slice") + 1
    assert (second.margin_relative, second.slice, second.min_topics, second.strict) == (0.02, "long", 5, False)
    assert [guardrail.kind for guardrail in config.guardrails] == ["judged", "table", "missing topics"]
    assert [guardrail.line for guardrail in config.guardrails] == [
        number for number, line in enumerate(lines, 1) if "[[guardrail]]" in line
    ]


CHECK = '[[check]]\nmeasure = "AP"\nmargin = 0.01\n'

MISTAKES = {
    # text of the file: line number, part of the problem, part of the fix
    f"[gate]\nalpa = 0.1\n{CHECK}": (2, "[gate]: unknown key: 'alpa'", "write alpha"),
    f"alpha = 0.1\n{CHECK}": (1, "the key alpha must be in the table [gate]", "write alpha under [gate]"),
    f"{CHECK}\n[[guardrails]]\nmissing_topics = 0": (5, "unknown table or key: 'guardrails'", "write guardrail"),
    f"[gate]\nalpha = 0.5\n{CHECK}": (2, "alpha is 0.5", "above 0 and below 0.5"),
    f"[gate]\nalpha = 0\n{CHECK}": (2, "alpha is 0", "above 0 and below 0.5"),
    f"[gate]\nalpha = true\n{CHECK}": (2, "alpha is True", "above 0 and below 0.5"),
    f"[gate]\nstrict = 1\n{CHECK}": (2, "strict is 1", "true or false"),
    f"[gate]\npower = 0.04\n{CHECK}": (2, "power is 0.04", "above alpha"),
    f'[gate]\ntest = "wilcoxon"\n{CHECK}': (2, "test is 'wilcoxon'", "one of randomization, t"),
    f'[gate]\ncorrection = "holms"\n{CHECK}': (2, "correction is 'holms'", "write holm"),
    f"[gate]\nresamples = 10\n{CHECK}": (2, "resamples is 10", "integer of at least 1000"),
    f"[gate]\nlarge_loss = 0\n{CHECK}": (2, "large_loss is 0", "such as 0.2"),
    f"[gate]\nmax_share_of_large_losses = 1\n{CHECK}": (2, "max_share_of_large_losses is 1", "such as 0.05"),
    f"{CHECK}max_share_of_large_loss = 0.1": (4, "unknown key: 'max_share", "write max_share_of_large_losses"),
    f"[gate]\nseed = -1\n{CHECK}": (2, "seed is -1", "integer of at least 0"),
    f"[gate]\ndepth = 0\n{CHECK}": (2, "depth is 0", "integer of at least 1"),
    f'[gate]\ntopics = "all"\n{CHECK}': (2, "topics is 'all'", "one of qrels, run, both"),
    f'[gate]\nties = "docids"\n{CHECK}': (2, "ties is 'docids'", "write docid"),
    f"[gate]\ndialect = []\n{CHECK}": (2, "dialect is []", "one of judged, trec_eval-10"),
    f'[gate]\ndialect = "trec"\n{CHECK}': (2, "dialect is 'trec'", "write trec_eval-9"),
    f"[gate]\nattributes = 3\n{CHECK}": (2, "attributes is 3", 'attributes = "topics.csv"'),
    f'attributes = "a.csv"\n[gate]\nattributes = "b.csv"\n{CHECK}': (3, "attributes is set twice", "remove one"),
    "": (None, "no check or guardrail", "[[check]]"),
    '[check]\nmeasure = "AP"\nmargin = 0.01': (1, "check is not a list of tables", "write [[check]]"),
    "[[check]]\nmargin = 0.01": (1, "[[check]] 1: measure is missing", "nDCG@10"),
    '[[check]]\nmeasure = "AP"': (1, "[[check]] 1: no margin is set", "margin = 0.01"),
    f"{CHECK}margin_relative = 0.1": (1, "[[check]] 1: margin and margin_relative are both set", "set the largest"),
    f'{CHECK}[[check]]\nmeasure = "AP"\nmargn = 0.01': (6, "[[check]] 2: unknown key: 'margn'", "write margin"),
    '[[check]]\nmeasure = "AP"\nmargin = -0.01': (3, "[[check]] 1: margin is -0.01", "0 or more"),
    '[[check]]\nmeasure = "AP"\nmargin = "1%"': (3, "[[check]] 1: margin is '1%'", "0 or more"),
    '[[check]]\nmeasure = "AP"\nmargin = nan': (3, "margin is nan", "a number from"),
    '[[check]]\nmeasure = "AP"\nmargin_relative = 2': (3, "[[check]] 1: margin_relative is 2", "a share"),
    f"{CHECK}min_topics = 1": (4, "[[check]] 1: min_topics is 1", "integer of at least 2"),
    f"{CHECK}slice = 3": (4, "[[check]] 1: slice is 3", "name of a [[slice]]"),
    f'{CHECK}strict = "yes"': (4, "[[check]] 1: strict is 'yes'", "true or false"),
    '[[check]]\nmeasure = "nDGC@10"\nmargin = 0.01': (2, "there is no measure 'nDGC'", "did you mean nDCG"),
    '[[check]]\nmeasure = "P@5,10"\nmargin = 0.01': (2, "P@5,10 selects 2 measures", "one [[check]] for each"),
    f"{CHECK}{CHECK}": (4, "[[check]] 2: duplicate check of AP", "remove one"),
    f"{CHECK}[[guardrail]]": (4, "[[guardrail]] 1: no limit is set", "measure, table, missing_topics"),
    f'{CHECK}[[guardrail]]\nmeasure = "Judged@10"': (4, "[[guardrail]] 1: no limit is set", "at_least"),
    f'{CHECK}[[guardrail]]\nmeasure = "Judged@10"\nat_least = 90': (6, "at_least is 90", "from 0 to 1"),
    f'{CHECK}[[guardrail]]\nmeasure = "Judged@10"\nat_most = 1': (6, "at_most is not allowed with measure", "at_least"),
    f'{CHECK}[[guardrail]]\ntable = "a.csv"\nat_most = 1': (4, "column is missing", "column of numbers"),
    f'{CHECK}[[guardrail]]\ntable = "a.csv"\ncolumn = "ms"\nquantile = 0.5': (4, "no limit is set", "at_most"),
    f"{CHECK}[[guardrail]]\nmissing_topics = 0\nat_least = 1": (6, "not allowed with missing_topics", "none"),
    f"{CHECK}[[guardrail]]\nmissing_topics = -1": (5, "missing_topics is -1", "integer of at least 0"),
    f'{CHECK}[[slice]]\nname = "x"': (4, "[[slice]] 1: `expression` of a slice must be text", "expression"),
    f'{CHECK}[[slice]]\nname = "x"\nexpresion = "a > 1"': (6, "[[slice]] 1: unknown key: 'e", "write expression"),
    f'{CHECK}[[slice]]\nname = "x"\nexpression = "a >"': (4, "[[slice]] 1: slice 'x'", "compare attributes"),
    f'{CHECK}[[slice]]\nname = "all"\nexpression = "a > 1"': (4, "slice name 'all' is already used", "another name"),
    f"{CHECK}margin = 0.02": (4, "this is not TOML", "[[check]]"),
    "[[check]\n": (1, "this is not TOML", "[[check]]"),
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_named_with_its_line_and_what_to_do(text: str) -> None:
    line, problem, fix = MISTAKES[text]
    with pytest.raises(InputError) as caught:
        parse_config(text, path="gate.toml")
    assert caught.value.path == "gate.toml"
    assert caught.value.line == line
    assert problem in caught.value.problem
    assert fix in caught.value.fix


def test_a_text_over_several_lines_does_not_shift_what_follows() -> None:
    text = f'[[slice]]\nname = "x"\nexpression = """\n[[check]]\nwords > 1"""\n{CHECK}margn = 1\n'
    with pytest.raises(InputError, match=r"unknown key: 'margn'") as caught:
        parse_config(text.replace("[[check]]\nwords", "words"), path="gate.toml")
    assert caught.value.line == 8


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"No such file.*judged gate init"):
        read_config(tmp_path / "gate.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_config(tmp_path / "bad.toml")
    (tmp_path / "marked.toml").write_bytes(b"\xef\xbb\xbf" + CHECK.encode())
    assert read_config(tmp_path / "marked.toml").checks[0].margin == 0.01


def test_python_objects_and_dicts_say_the_same() -> None:
    mapping = {
        "gate": {"alpha": 0.1},
        "check": [{"measure": "AP", "margin": 0.01}],
        "guardrail": [{"missing_topics": 1}],
    }
    config = GateConfig((Check("AP", margin=0.01),), (Guardrail(missing_topics=1),), alpha=0.1)
    assert config_of(mapping) == config
    assert config_of(config) is config
    with pytest.raises(InputError, match="list is not a configuration"):
        config_of([])
    with pytest.raises(InputError, match=re.escape("[[check]] 1: unknown key: 'x'")):
        config_of({"check": [{"measure": "AP", "x": 1}]})


def test_the_configuration_in_the_documentation_is_accepted() -> None:
    page = Path(__file__).parents[3] / "docs" / "gate-rules.md"
    (text,) = re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    config = parse_config(text)
    assert [check.slice for check in config.checks] == ["all", "long queries", "query_class=explore"]
    assert [guardrail.kind for guardrail in config.guardrails] == ["judged", "table", "missing topics"]
    assert config == GateConfig(
        config.checks, config.guardrails, config.slices, "topics.csv", "queries.tsv", topics="qrels", by="query_class"
    )


def test_a_table_of_classes_is_one_check_for_each() -> None:
    measures = '[class.measures]\nlaw = "P@5"\n"kind=a" = "AP"\nodd = "RR"\n'
    text = f'[class]\nby = "kind"\nmargin_relative = 0.1\nmin_topics = 5\n{measures}'
    config = parse_config(text + '[[slice]]\nname = "odd"\nexpression = "n == 1"\n')
    names = [(check.measure, check.slice, check.margin_relative, check.min_topics) for check in config.checks]
    assert names == [("P@5", "kind=law", 0.1, 5), ("AP", "kind=a", 0.1, 5), ("RR", "odd", 0.1, 5)]
    assert config.by == "kind"
    assert config_of({"class": {"by": "kind", "margin": 0.1, "measures": {"law": "P@5"}}}).by == "kind"
    for wrong, problem in (("margin_relative", "margn"), ('by = "kind"', "by = 1"), ('"P@5"', '"P5"')):
        with pytest.raises(InputError, match=r"gate\.toml"):
            parse_config(text.replace(wrong, problem), path="gate.toml")
    with pytest.raises(InputError, match="no margin is set"):
        parse_config('[class.measures]\nlaw = "P@5"\n')


@pytest.mark.parametrize(
    "text",
    ["alpha = " + "9" * 4_500, "alpha = " + "[" * 4_000, "[gate]\n" + "a." * 60_000 + "a = 1", "day = 2024-02-30"],
    ids=["digits", "nesting", "long key", "date"],
)
def test_what_pythons_reader_fails_at_names_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "gate.toml"
    path.write_text(text)
    for read in (read_config, read_slices):
        with pytest.raises(InputError, match=r"gate\.toml.* Fix: "):
            read(path)


@pytest.mark.parametrize(
    ("mapping", "fix"),
    [
        ({"check": [{"measure": "AP", "max_loss": 0.1}]}, "write margin"),
        ({"check": [{"measure": "AP", "at_most_ratio": 1.1}]}, "write margin"),
        ({"measure": "AP", "margin": 0.1}, r"write measure under \[\[check\]\]"),
        ({"gate": {"margin": 0.1}}, r"write margin under \[\[check\]\]"),
        ({"guardrail": [{"measure": "Judged@10", "margin": 0.1}]}, r"write margin under \[\[check\]\]"),
        ({"guardrail": [{"table": "t.csv", "column": "ms", "at_most_rate": 0.1}]}, "write at_most_ratio"),
        ({"guardrail": [{"table": "t.csv", "column": "ms", "at_least_ratio": 0.1}]}, "(?!write at_most)"),
    ],
)
def test_what_is_meant_by_another_key(mapping: dict[str, object], fix: str) -> None:
    with pytest.raises(
        InputError,
        match=rf"(unknown key: '\w+'|the key \w+ must be in (the table \[gate\]|a table \[\[check\]\]))\. Fix: {fix}",
    ):
        config_of(mapping)
