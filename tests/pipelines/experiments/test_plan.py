"""Plans: configurations, omitted combinations, errors with their lines, and dependencies of keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judged.errors import InputError
from judged.pipelines.experiments import Plan
from pipelines.experiments import small_plan

ENGINES = "[control]\nengine = 'sqlite'\nstemmer = 'none'\n"  # lines 7 to 9 of a plan
PIPELINE = "[factors]\nengine = ['sqlite', 'p']\n[pipelines.p]"


def plan_of(folder: Path, **changes: Any) -> Plan:
    return Plan.of(small_plan.write(folder) | changes)


def names(plan: Plan) -> list[str]:
    return [configuration.name for configuration in plan.configurations]


def test_full_design_without_invalid_and_forbidden_combinations(tmp_path: Path) -> None:
    factors = {"stemmer": ["none", "english"], "tokens": ["words", "trigrams"], "title_weight": [1, 2]}
    plan = plan_of(tmp_path, factors=factors, forbidden=[{"tokens": "trigrams", "title_weight": 2}])
    assert names(plan) == [
        "control", "title_weight=2", "tokens=trigrams", "stemmer=english", "stemmer=english title_weight=2",
    ]  # fmt: skip
    assert [
        (omitted.levels["stemmer"], omitted.levels["title_weight"], omitted.reason) for omitted in plan.left_out
    ] == [
        ("none", 2, "forbidden: tokens=trigrams title_weight=2"),
        ("english", 1, "sqlite: trigrams cannot be stemmed"),
        ("english", 2, "forbidden: tokens=trigrams title_weight=2"),
    ]
    assert len(plan.configurations) + len(plan.left_out) == 8
    assert plan.configurations[0].levels == {"stemmer": "none", "tokens": "words", "title_weight": 1}
    assert plan.configurations[0].node.settings["title_weight"] == 1.0
    assert len({configuration.key for configuration in plan.configurations}) == 5


def test_one_factor_at_a_time(tmp_path: Path) -> None:
    factors = {"stemmer": ["english", "none"], "title_weight": [1, 2, 5]}
    plan = plan_of(tmp_path, factors=factors, design="one-at-a-time")
    assert names(plan) == ["control", "stemmer=english", "title_weight=2", "title_weight=5"]
    assert [configuration.levels for configuration in plan.configurations][3] == {"stemmer": "none", "title_weight": 5}


def test_engines_without_a_factor_or_level(tmp_path: Path) -> None:
    factors = {"engine": ["sqlite", "dense", "postgresql"], "stemmer": ["none", "english"], "title_weight": [1.0, 2.0]}
    plan = plan_of(tmp_path, factors=factors)
    assert names(plan) == [
        "control", "sqlite title_weight=2", "sqlite stemmer=english", "sqlite stemmer=english title_weight=2", "dense",
    ]  # fmt: skip
    assert plan.configurations[-1].levels == {"engine": "dense"}
    assert [(note.rule, note.subject) for note in plan.notes] == [("factor-without-effect", "dense")]
    assert {omitted.reason for omitted in plan.left_out} == {
        "postgresql does not allow title_weight = 1.0", "postgresql does not allow title_weight = 2.0",
    }  # fmt: skip


def test_factors_apply_to_pipelines_except_for_fixed_settings(tmp_path: Path) -> None:
    pipelines = {
        "raw": {"engine": "sqlite", "stemmer": "none"},
        "hybrid": {"engine": "fusion", "lists": ["sqlite", "raw", "dense"], "rrf_k": 10},
        "again": {"engine": "rerank", "of": "hybrid", "function": "math:sqrt"},
    }
    factors = {"engine": ["hybrid", "again"], "stemmer": ["none", "english"], "rrf_k": [20, 30]}
    plan = plan_of(tmp_path, factors=factors, pipelines=pipelines, control={})
    assert names(plan) == ["control", "hybrid stemmer=english", "again", "again stemmer=english"]
    node = plan.configurations[3].node
    assert [(child.name, child.settings.get("stemmer")) for child in node.all()] == [
        ("again", None), ("hybrid", None), ("sqlite", "english"), ("raw", "none"), ("dense", None),
    ]  # fmt: skip
    assert node.of[0].settings["rrf_k"] == 10
    assert {(note.subject, note.text.partition(":")[0]) for note in plan.notes} == {
        ("hybrid", "does not use rrf_k"),
        ("again", "does not use rrf_k"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dept = 5", r"plan.toml:7: unknown table or key: 'dept'. Fix: did you mean depth"),
        ("depth = 0", r"plan.toml:7: depth must be .* got 0"),
        ("depth = true", r"plan.toml:7: depth must be .* got True"),
        ("design = 'half'", r"plan.toml:7: no design 'half'"),
        ("measures = 3", r"plan.toml:7: .*"),
        (
            ENGINES + "stemer = 'x'",
            r"plan.toml:10: \[control\]: unknown setting of the plan's engines: 'stemer'.*stemmer",
        ),
        (ENGINES + "k1 = 1.0", r"plan.toml:10: \[control\]: unknown setting of the plan's engines: 'k1'"),
        (
            ENGINES + "tokens = 'letters'",
            r"plan.toml:10: .*sqlite does not allow tokens = 'letters'. Fix: use 'words', 'tri",
        ),
        (ENGINES + "title_weight = 'x'", r"plan.toml:10: .*use a number"),
        (
            ENGINES + "title_weight = -1",
            r"plan.toml:10: .*sqlite does not allow title_weight = -1. Fix: use a number from 0",
        ),
        (ENGINES + "title_weight = true", r"plan.toml:10: .*use a number"),
        (ENGINES + "title_weight = nan", r"plan.toml:10: .*title_weight is nan"),
        (ENGINES + "synonyms = 'none.txt'", r"plan.toml:7: .control.: .*none.txt: cannot read the file"),
        (ENGINES + "rewrite = 'nowhere:f'", r"plan.toml:10: .*no function 'nowhere:f'"),
        (
            "[control]\nengine = 'lucene'",
            r"plan.toml:8: \[control\]: unknown engine or pipeline 'lucene'.*sqlite",
        ),
        ("[control]\nstemmer = 'none'", r"plan.toml:7: \[control\]: the control configuration has no engine"),
        (
            ENGINES + "[factors]\nstemmer = ['english']",
            r"plan.toml:9: \[control\]: the control must have .* stemmer, got 'none'",
        ),
        (ENGINES + "[factors]\nstemmer = []", r"plan.toml:11: \[factors\]: stemmer has no levels"),
        (ENGINES + "[factors]\ntitle_weight = [1, 1.0]", r"plan.toml:11: .*title_weight has duplicate levels"),
        (
            ENGINES + "[factors]\nstemmer = ['none', 'german']",
            r"plan.toml:11: \[factors\]: sqlite does not allow stemmer = 'german'",
        ),
        (ENGINES + "[factors]\nengine = ['sqlite', 'x']", r"plan.toml:11: \[factors\]: unknown engine or pipeline 'x'"),
        (
            ENGINES + "[[forbidden]]\nstemmer = 'x'",
            r"plan.toml:11: \[\[forbidden\]\] 1: sqlite does not allow stemmer = 'x'",
        ),
        (
            ENGINES + "[[forbidden]]\nengine = 'sqlit'",
            r"plan.toml:11: .*no configuration has engine 'sqlit'",
        ),
        (ENGINES + "[[forbidden]]\nstemmer = 'english'", r"plan.toml:11: .*no configuration has stemmer 'english'"),
        (ENGINES + "[[forbidden]]\ntokens = 'words'", r"plan.toml:11: .*no configuration has tokens"),
        ("[factors]\nengine = ['sqlite', 'http']", r"plan.toml:8: \[factors\]: http requires file. Fix: set file"),
        ("[control]\nengine = 'function'", r"plan.toml:8: \[control\]: function requires search"),
        (
            f"{PIPELINE}\nengine = 'http'",
            r"plan.toml:10: \[pipelines.p\]: p requires file",
        ),
        (
            f"{PIPELINE}\nengine = 'rerank'\nof = 'sqlite'\nfunction = 'nope:f'",
            r"plan.toml:12: \[pipelines.p\]: function: no function 'nope:f'",
        ),
        (
            f"{PIPELINE}\nengine = 'rerank'\nof = 'sqlit'\nfunction = 'math:sqrt'",
            r"plan.toml:11: \[pipelines.p\]: unknown engine or pipeline 'sqlit'",
        ),
        (
            f"{PIPELINE}\nengine = 'fusion'\nlists = ['sqlite', 'dense']\nweights = 3",
            r"plan.toml:12: \[pipelines.p\]: fusion does not allow weights = 3. Fix: use a list",
        ),
        (ENGINES + "[forbidden]\nstemmer = 'x'", r"plan.toml:10: `forbidden` must be a list"),
        (
            ENGINES + "[[forbidden]]\nstemmer = 'none'",
            (
                r"the control configuration cannot be run: forbidden:"
                " stemmer=none"
            ),
        ),
        (ENGINES + "[pipelines.p]\nengine = 'x'", r"plan.toml:11: \[pipelines.p\]: no engine 'x'"),
        (ENGINES + "[pipelines.p]\nengine = 'fusion'\nlists = ['a']", r"plan.toml:12: .*at least two"),
        (ENGINES + "[pipelines.p]\nengine = 'fusion'", r"plan.toml:10: .*fusion requires lists"),
        (ENGINES + "[pipelines.p]\nengine = 'rerank'\nof = 'sqlite'", r"plan.toml:10: .*rerank requires function"),
        (
            ENGINES + "[pipelines.p]\nengine = 'sqlite'\nk1 = 1",
            r"plan.toml:12: .*unknown setting of the engine sqlite: 'k1'",
        ),
        (ENGINES + "[pipelines.sqlite]\nengine = 'sqlite'", r"plan.toml:10: .*sqlite is a reserved name"),
        (
            "[control]\nengine = 'p'\n[pipelines.p]\nengine = 'rerank'\nof = 'p'\nfunction = 'math:sqrt'",
            r"plan.toml:10: \[pipelines.p\]: .*'p' contains itself",
        ),
        (
            "[control]\nengine = 'p'\n[pipelines.p]\nengine = 'fusion'\nlists = ['sqlite', 'dense']\nweights = [1]",
            r"plan.toml:12: \[pipelines.p\]: .*weights of p.*1 weights for 2 lists. Fix: [^:]*$",
        ),
        ("[factors]\nengine = [3]", r"plan.toml:8: .*engine name must be text, got 3"),
        ("[control", r"plan.toml:7: this is not TOML.*write tables as \[name\] or"),
    ],
)
def test_invalid_plans_are_rejected_with_their_line(text: str, message: str, tmp_path: Path) -> None:
    path = small_plan.plan_file(tmp_path, "")
    other_lines = "\n".join(
        line for line in small_plan.HEAD.splitlines() if not line.startswith("measures") or "measures" not in text
    )
    path.write_text(other_lines + ("\n" if "measures" not in text else "\n\n") + text)
    with pytest.raises(InputError, match=message):
        Plan.read(path)


def test_missing_files_are_rejected(tmp_path: Path) -> None:
    plan = small_plan.write(tmp_path)
    assert Plan.of(plan | {"qrels": Path(plan["qrels"])}).qrels == plan["qrels"]
    for key in ("documents", "queries", "qrels"):
        with pytest.raises(InputError, match=f"{key}-not-here: cannot read the file"):
            Plan.of(plan | {key: str(tmp_path / f"{key}-not-here")})
    with pytest.raises(InputError, match="qrels is missing"):
        Plan.of({key: value for key, value in plan.items() if key != "qrels"})
    with pytest.raises(InputError, match="got int"):
        Plan.of(3)


def test_a_key_depends_on_all_imported_modules_of_the_plan(tmp_path: Path) -> None:
    """Imported by the module, indirectly, in a package, relatively, or only when the function runs."""
    (tmp_path / "kit" / "deep").mkdir(parents=True)
    modules = {
        "ranks.py": "import kit.deep.words as w, math, numpy\nfrom names import title\n"
        "def longest(query, given):\n    import late\n    return [1.0] * len(given)\n",
        "names.py": "from kit import shape\ntitle = ''\n",
        "kit/__init__.py": "from .shape import *\n",
        "kit/shape.py": "import ranks\n",
        "kit/deep/words.py": "from ..other import one\n",  # a folder without __init__ is a package too
        "kit/other.py": "one = 1\n",
        "late.py": "",
    }
    for name, text in {**modules, "stranger.py": "", "numpy_not.py": ""}.items():
        (tmp_path / name).write_text(text)
    plan_text = (
        "[control]\nengine = 'again'\n[pipelines.again]\nengine = 'rerank'\nof = 'sqlite'\nfunction = 'ranks:longest'"
    )
    path = small_plan.plan_file(tmp_path, plan_text)

    def key() -> str:
        return Plan.read(path).configurations[0].key

    keys = [key()]
    (tmp_path / "stranger.py").write_text("changed = 1")
    assert key() == keys[0]
    for name, text in modules.items():
        (tmp_path / name).write_text(f"{text}changed = 1\n")
        keys.append(key())
    assert len(set(keys)) == 1 + len(modules)
    (tmp_path / "other").mkdir()
    other_path = small_plan.plan_file(tmp_path / "other", plan_text)
    for name in modules:
        (tmp_path / "other" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "other" / name).write_text((tmp_path / name).read_text())
    assert Plan.read(other_path).configurations[0].key == keys[-1]


@pytest.mark.parametrize(
    ("module", "function", "message"),
    [
        ("def f(query): return query", "odd:g", r"plan.toml:10: \[control\]: rewrite: .*odd.py does not define 'g'"),
        ("def f(query) return query", "odd:f", "plan.toml:10: .*odd.py:1: "),
        ("def f(query): return query", "odd", "plan.toml:10: .*no function 'odd'"),
    ],
)
def test_missing_functions_are_rejected(tmp_path: Path, module: str, function: str, message: str) -> None:
    (tmp_path / "odd.py").write_text(module)
    with pytest.raises(InputError, match=message):
        Plan.read(small_plan.plan_file(tmp_path, f"{ENGINES}rewrite = '{function}'"))


@pytest.mark.parametrize("module", ["from math import sqrt as f", "f = str", "from os.path import *", "class f: pass"])
def test_a_function_may_be_any_name_in_its_module(tmp_path: Path, module: str) -> None:
    (tmp_path / "any_name.py").write_text(module)
    assert Plan.read(small_plan.plan_file(tmp_path, f"{ENGINES}rewrite = 'any_name:f'")).configurations


def test_a_key_depends_only_on_what_is_run(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "words.txt").write_text("car, automobile")
    control = {"engine": "sqlite", "synonyms": "words.txt"}

    def key(folder: str, **changes: Any) -> str:
        path = small_plan.plan_file(tmp_path / folder, "")
        unchanged = [line for line in small_plan.HEAD.splitlines() if line.split(" ")[0] not in changes]
        changed = [f"{name} = {value!r}" for name, value in changes.items()]
        settings = [f"{name} = {value!r}" for name, value in control.items()]
        path.write_text("\n".join([*unchanged, *changed, "[control]", *settings]))
        return Plan.read(path).configurations[0].key

    first = key("a")
    assert key("a") == first
    assert key("a", measures=["AP"]) == first  # scores are computed from the saved run
    assert key("a", depth=99) != first
    assert key("a", rounds=9) != first
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "words.txt").write_text("car, automobile")
    assert key("b") == first  # the same files in another folder
    (tmp_path / "b" / "words.txt").write_text("car, auto")
    assert key("b") != first
    control["stemmer"] = "none"
    assert key("a") != first
    del control["stemmer"]
    (tmp_path / "a" / "docs.jsonl").write_text('{"doc_id": "d9", "text": "new"}')
    control_key = Plan.read(tmp_path / "a" / "plan.toml").configurations[0].key
    assert control_key != first


def test_a_key_depends_on_the_content_of_a_module(tmp_path: Path) -> None:
    path = small_plan.plan_file(tmp_path, ENGINES + "rewrite = 'rewriting:shout'")
    keys = []
    for text in ("def shout(query): return query.upper()", "def shout(query): return query"):
        (tmp_path / "rewriting.py").write_text(text)
        keys.append(Plan.read(path).configurations[0].key)
    assert keys[0] != keys[1]


def test_paths_are_relative_to_the_plan(tmp_path: Path) -> None:
    plan = Plan.read(small_plan.plan_file(tmp_path, ENGINES))
    assert plan.documents == str(tmp_path / "docs.jsonl")
    assert [plan.to_dict()[name] for name in ("documents", "queries", "qrels")] == [
        "docs.jsonl", "queries.jsonl", "qrels.txt",
    ]  # fmt: skip


def test_the_plan_counts_searches(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, factors={"stemmer": ["none", "english"]})
    assert (
        "2 indexes to build; for each index, 1 warm-up search and 3 searches for each of 4 queries; in total, 26"
        " searches for the top 100 documents" in plan.sentences[0]
    )
    assert plan.to_dict()["configurations"][1] == {
        "configuration": "stemmer=english", "stemmer": "english", "key": plan.configurations[1].key,
    }  # fmt: skip
