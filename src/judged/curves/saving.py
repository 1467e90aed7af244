"""Curves in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from judged import charting
from judged.answer.by_name import form_by_name
from judged.atomic import replaced
from judged.charting import PICTURES
from judged.curves import forms
from judged.curves.chart import chart
from judged.curves.text import text_plot
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.curves.points import CurvePoints

TEXTS = ("plot", "table", "csv", "json", "markdown", "latex")
FORMS = (*TEXTS, "parquet", *PICTURES)
_SUFFIX = {".txt": "plot", ".md": "markdown", ".tex": "latex"} | {
    f".{form}": form for form in ("csv", "json", "parquet", *PICTURES)
}


def save(curves: CurvePoints, path: str | Path, form: str | None) -> None:
    """Write curves; an existing file is replaced only when the new one is complete."""
    form = form or form_of(path)
    if form not in FORMS:
        raise InputError(f"no form {form!r} of a curve is known", fix=f"one of {', '.join(FORMS)}", path=str(path))
    if form == "parquet":
        from pyarrow import parquet  # it takes a while, and few calls need it

        facts = forms.document(curves)
        del facts["curves"]
        table = forms.long_table(curves).replace_schema_metadata({b"judged": json.dumps(facts)})
        with replaced(path) as temporary:
            parquet.write_table(table, temporary)
        return
    made = picture(curves, form) if form in PICTURES else f"{written(curves, form)}\n".encode(errors="backslashreplace")
    with replaced(path) as temporary:
        temporary.write_bytes(made)


def form_of(path: str | Path) -> str:
    """Tell what a file is to become by the end of its name."""
    return form_by_name(path, _SUFFIX, "a curve")


def written(curves: CurvePoints, form: str) -> str:
    """Give a form that is text."""
    if form == "plot":
        return f"{text_plot(curves)}\n\n{curves.basis()}"
    if form == "json":
        return json.dumps(forms.document(curves), indent=2, ensure_ascii=False)
    if form == "csv":
        return forms.csv_table(curves).csv()
    if form == "html":
        return picture(curves, form).decode()
    table = forms.text_table(curves)
    made = {"table": table.text, "markdown": table.markdown, "latex": table.latex}
    if form not in made:
        raise InputError(f"the form {form!r} is no text", fix=f"one of {', '.join(TEXTS)}, or save to a file")
    return made[form]()


def picture(curves: CurvePoints, form: str) -> bytes:
    """Give a chart as a PNG, SVG or PDF picture, or as an HTML page that holds all that it needs."""
    return charting.picture(chart(curves), form, curves.title)
