"""Expressions of slices: syntax, errors, and agreement with Python row by row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judged import InputError
from judged.data.attributes import Attributes
from judged.data.expression import Expression, quote_attribute

KNOWN = Attributes.of(
    {
        "q1": {"kind": "news", "words": 3, "flag": True, "rank": 3},
        "q2": {"kind": "law", "words": 5, "flag": False, "rank": 1},
        "q3": {"kind": "tax law", "words": -1},
        "q4": {},
    }
)


def chosen(text: str, attributes: Attributes = KNOWN) -> str:
    """The topics that satisfy it, as one digit each."""
    mask = Expression(text).mask(attributes).tolist()
    return "".join(query[1:] for query, hit in zip(attributes.query_ids, mask, strict=True) if hit)


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("", "1234"),
        ("kind == 'news'", "1"),
        ("'news' == kind", "1"),
        ("kind != 'news'", "23"),  # a missing value differs from nothing
        ("kind in ('news', 'law')", "12"),
        ("kind in ['tax law']", "3"),
        ("kind in ()", ""),
        ("kind not in ('news',)", "23"),
        ("kind < 'm'", "2"),
        ("words < 4", "13"),
        ("4 > words", "13"),
        ("words == -1", "3"),
        ("words >= 3.0", "12"),
        ("words != 3", "23"),
        ("words in (3, 4)", "1"),
        ("3 <= words < 5", "1"),
        ("5 >= words > -1", "12"),
        ("3 < words < 4", ""),
        ("words == rank", "1"),
        ("words > rank", "2"),
        ("rank <= words <= 3", "1"),
        ("flag", "1"),
        ("flag == True", "1"),
        ("flag == False", "2"),
        ("flag != True", "2"),
        ("not flag", "234"),  # not turns every answer round, that of a missing value too
        ("not words < 4", "24"),
        ("missing(words)", "4"),
        ("not missing(flag)", "12"),
        ("contains(kind, 'law')", "23"),
        ("not contains(kind, 'law')", "14"),
        ("kind == 'news' or kind == 'law' and words > 9", "1"),  # and binds closer than or
        ("(kind == 'news' or kind == 'law') and words > 4", "2"),
        ("not flag and words > 4", "2"),  # not binds closer than and
        ("not (flag and words > 4)", "1234"),
        ("not kind == 'news'", "234"),  # a comparison binds closer than not
        ("words == 3 # a remark", "1"),
    ],
)
def test_an_expression_means_what_it_says(text: str, topics: str) -> None:
    assert chosen(text) == topics


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "print(kind)",
        "missing(kind).real",
        "kind.upper() == 'NEWS'",
        "kind.__class__",
        "kind[0] == 'n'",
        "(lambda: 1)()",
        "[x for x in kind]",
        "f'{kind}' == 'news'",
        "kind if flag else words",
        "words + 1 > 3",
        "-words == 3",
        "words < 9**9**9",
        "words < 1 << 60",
        "words == --3",
        "words == 1j",
        "words in range(3)",
        "kind in kind",
        "kind in 'news'",
        "'news' in kind",
        "kind in (('a',),)",
        "1 < words in (3, 4)",
        "kind is 'law'",
        "kind == None",
        "kind == b'law'",
        "flag or 1",
        "5 < 3",
        "True",
        "...",
        "'a'",
        "missing()",
        "missing('kind')",
        "missing(kind, words)",
        "missing(name=kind)",
        "missing(kind) == flag",
        "contains(kind)",
        "contains('a', kind)",
        "contains(kind, 3)",
        "contains(kind, *flag)",
        "await kind",
        "words < " + "9" * 1500,
    ],
)
def test_nothing_else_may_stand_in_it(text: str) -> None:
    with pytest.raises(InputError, match="is not supported in an expression"):
        Expression(text)


@pytest.mark.parametrize(
    "text",
    ["kind ==", "kind = 'a'", "kind := 'a'", "kind == 'a'; x", "kind\n== 'a'", "import os", "(kind", "\x00", "\ud800",
     "yield", "*kind", "`` == 1", "`kind", "(" * 900 + "flag" + ")" * 900],
)  # fmt: skip
def test_what_python_cannot_parse_is_no_expression(text: str) -> None:
    with pytest.raises(InputError, match="is not an expression"):
        Expression(text)


def test_long_and_deep_expressions_end_in_an_answer_or_a_refusal() -> None:
    with pytest.raises(InputError, match="may have at most 2000 characters, got 2001"):
        Expression("a" * 2001)
    assert chosen("not " * 480 + "flag") == "1"
    assert chosen(" and ".join(["flag"] * 200)) == "1"
    with pytest.raises(InputError):
        Expression("not(" * 300 + "flag" + ")" * 300)


def test_types_must_fit_and_the_message_names_the_attribute() -> None:
    for text, problem in {
        "kind == 3": "the attribute kind is a text, but is compared with 3. Fix: write kind == 'a text in quotes'",
        "words == '3'": "the attribute words is a number, but is compared with '3'. Fix: write words == 3",
        "words in (3, 'b')": "the attribute words is a number, but is compared with 'b'",
        "words == True": "the attribute words is a number, but is compared with True",
        "flag == 1": "the attribute flag is true or false, but is compared with 1. Fix: write flag == True",
        "flag < True": "flag cannot be compared with true or false by <, <=, >, or >=",
        "kind == words": "the attributes kind and words are of different types",
        "kind": "the attribute kind is not true or false",
        "words and flag": "the attribute words is not true or false",
        "contains(words, '3')": "the attribute words is not a text",
    }.items():
        with pytest.raises(InputError) as raised:
            Expression(text).mask(KNOWN)
        assert problem in str(raised.value)


def test_an_unknown_attribute_lists_the_known_ones() -> None:
    for text in ("nope == 1", "missing(nope)", "contains(nope, 'a')", "words < nope", "`no pe`"):
        with pytest.raises(
            InputError, match=r"no attribute 'no ?pe'\. Fix: use one of kind, words, flag, rank, query_id\."
        ):
            Expression(text).mask(KNOWN)


def test_names_that_are_no_words_stand_in_backquotes() -> None:
    attributes = Attributes.of({"q1": {"class": "x", "title (en)": 1.0, "kind": "`class`"}, "q2": {"class": "y"}})
    assert chosen("`class` == 'x' and `title_(en)` == 1", attributes) == "1"
    assert chosen("missing(`title_(en)`)", attributes) == "2"
    assert chosen("kind == '`class`'", attributes) == "1"  # in a text they are signs as all others
    assert Expression("`class` == 'x' or `title_(en)` > 1 or kind == 'a'").names == ("class", "title_(en)", "kind")
    assert quote_attribute("o\u0308l") == "`o\u0308l`"  # the parser would compose it
    with pytest.raises(InputError, match="has a backquote"):
        quote_attribute("a`b")
    with pytest.raises(InputError, match="'kind \\+ 1' is not supported"):  # messages show the text as it was written
        Expression("`title_(en)` == 1 and kind + 1 > 2")


class Value:
    """What Python compares in our place: a value that satisfies no comparison where it is missing."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def _with(self, other: Any, holds: Any) -> bool:
        other = other.value if isinstance(other, Value) else other
        return self.value is not None and other is not None and holds(self.value, other)

    def __eq__(self, other: object) -> bool:
        return self._with(other, lambda a, b: a == b)

    def __ne__(self, other: object) -> bool:
        return self._with(other, lambda a, b: a != b)

    def __lt__(self, other: Any) -> bool:
        return self._with(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> bool:
        return self._with(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> bool:
        return self._with(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> bool:
        return self._with(other, lambda a, b: a >= b)

    def __bool__(self) -> bool:
        return bool(self.value)

    __hash__ = None  # type: ignore[assignment]

    def outside(self, among: tuple[Any, ...]) -> bool:
        return self.value is not None and self.value not in among


TEXTS, NUMBERS = ("a", "b", "ab", "it's"), (-1.5, 0, 1, 2, 1e3)
OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])


def compared(names: list[str], constants: tuple[Any, ...]) -> st.SearchStrategy[tuple[str, str]]:
    """Give comparisons of some attributes: as we read them, and as Python does."""
    name, constant = st.sampled_from(names), st.sampled_from(constants).map(repr)
    several = st.lists(st.sampled_from(constants), max_size=3).map(tuple).map(repr)
    same = st.one_of(
        st.tuples(name, OPERATORS, constant | name).map(" ".join),
        st.tuples(constant, OPERATORS, name).map(" ".join),
        st.tuples(constant | name, OPERATORS, name, OPERATORS, constant | name).map(" ".join),
        st.tuples(name, st.just("in"), several).map(" ".join),
        name.map(lambda pair: f"missing({pair})"),
    ).map(lambda text: (text, text))
    outside = st.tuples(name, several).map(
        lambda pair: (f"{pair[0]} not in {pair[1]}", f"{pair[0]}.outside({pair[1]})")
    )
    return same | outside


LEAVES = st.one_of(
    compared(["kind", "source"], TEXTS),
    compared(["words", "rank"], NUMBERS),
    st.sampled_from(["flag", "flag == True", "flag != False", "missing(flag)", "contains(kind, 'a')"]).map(
        lambda text: (text, text)
    ),
)


def combined(part: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    def joined(word: str) -> Any:
        return lambda pairs: tuple(f"{pair} {word} {second_text}" for pair, second_text in zip(*pairs, strict=True))

    return st.one_of(
        st.tuples(part, part).map(joined("and")),
        st.tuples(part, part).map(joined("or")),
        part.map(lambda pair: (f"not {pair[0]}", f"not {pair[1]}")),
        part.map(lambda pair: (f"({pair[0]})", f"({pair[1]})")),
    )


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from([None, *TEXTS]),
            "source": st.sampled_from([None, *TEXTS]),
            "words": st.sampled_from([None, *NUMBERS]),
            "rank": st.sampled_from([None, *NUMBERS]),
            "flag": st.sampled_from([None, True, False]),
        }
    ),
    max_size=6,
)
FIRST = {"kind": "a", "source": "b", "words": 1, "rank": 2, "flag": True}  # every column has its type


@settings(max_examples=400)
@given(st.recursive(LEAVES, combined, max_leaves=8), ROWS)
def test_the_mask_is_what_python_says_row_by_row(texts: tuple[str, str], rows: list[dict[str, Any]]) -> None:
    ours, python = texts
    rows = [FIRST, *rows]
    attributes = Attributes.of({f"q{number}": row for number, row in enumerate(rows)})
    functions = {
        "missing": lambda wrapper: wrapper.value is None,
        "contains": lambda wrapper, text: wrapper.value is not None and text in wrapper.value,
    }
    expected = [
        bool(eval(python, {**functions, **{name: Value(value) for name, value in row.items()}}))  # noqa: S307
        for row in rows
    ]
    assert Expression(ours).mask(attributes).tolist() == expected


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("class == 'law'", "`class` == 'law'"),
        ("not class in ('a', 'class') and from > 3", "not `class` in ('a', 'class') and `from` > 3"),
        ("missing(class)", "missing(`class`)"),
    ],
)
def test_a_name_that_is_a_keyword_of_python_needs_no_backquotes(text: str, quoted: str) -> None:
    attributes = Attributes.of({"q1": {"class": "law", "from": 5}, "q2": {"class": "a", "from": 4}, "q3": {"from": 1}})
    assert Expression(text).names == Expression(quoted).names
    assert Expression(text).mask(attributes).tolist() == Expression(quoted).mask(attributes).tolist()


@pytest.mark.parametrize("text", ["class is None", "class == None", "None", "lambda: 1", "'a' if kind else 'b'"])
def test_keywords_that_make_no_condition_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="compare attributes with texts"):
        Expression(text)


def test_a_statement_is_no_expression() -> None:
    with pytest.raises(InputError, match="compare attributes with texts"):
        Expression("import os")
