"""Tables in a terminal."""

from __future__ import annotations

from judged.results import TEXT, Column, Table


def test_texts_below_rows_belong_to_their_rows_in_groups() -> None:
    columns = (Column("name", ["a", "b", "c"], TEXT), Column("text", ["of a", "of b", "of c"], TEXT, below=True))
    lines = Table("t", columns, groups=["x", "x", "y"]).text().splitlines()
    assert [line.strip() for line in lines] == [
        "name", "x", "a", "text: of a", "b", "text: of b", "y", "c", "text: of c"
    ]  # fmt: skip
