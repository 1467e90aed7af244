"""Rows against time and memory, from 10^4 to 10^8 of them in any order: what docs/any-size.md shows.

`python bench/rows.py [--folder F] [--most 100000000] [--spark sc://HOST:PORT]` makes the data that is not there
yet, evaluates each form of it in a process of its own, and writes the table and the figure. What the folder holds of an
earlier run is not measured again. The data of 10^8 rows take
12 GB, and DuckDB needs as much again for a while. A server of Spark reads the Parquet files, so it must see the folder.
This module imports the standard library only, as processes.py says why; others work in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from processes import run
from report import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Cell = dict[str, Any]

PAGE = Path(__file__).parents[1] / "docs" / "any-size.md"
FIGURE = PAGE.parent / "images" / "rows.svg"
BEGIN, END = "<!-- written by bench/rows.py: begin -->", "<!-- written by bench/rows.py: end -->"
FORMS = {"TREC": "run.txt", "TREC, gzip": "run.txt.gz", "Parquet": "run.parquet", "DuckDB": "runs.duckdb/run"}
SIZES = (10**4, 10**5, 10**6, 7 * 10**6, 10**7, 10**8)  # up to 8 million rows are held in memory
DEPTH = 1000  # documents a topic
_CHUNK = 1_000_000
_EVALUATE = """
import sys
import judged
scores = judged.evaluate(sys.argv[1], sys.argv[2], ["AP", "nDCG@10"])
print(scores.summary().text(), file=sys.stderr)
print(scores.values.sum(axis=2).tolist())
"""


def main() -> None:
    """Make, measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "judged-rows")
    parser.add_argument("--most", type=int, default=10**8)
    parser.add_argument("--spark", help="the address of a server: sc://HOST:PORT")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    kept = asked.folder / "cells.json"
    cells: dict[str, Cell] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for rows in (size for size in SIZES if size <= asked.most):
        folder = asked.folder / str(rows)
        folder.mkdir(exist_ok=True)
        run([sys.executable, __file__, "make", str(rows), str(folder)])
        forms = {name: str(folder / file) for name, file in FORMS.items()}
        if asked.spark:
            table = f"judged_rows_{rows}"
            run([sys.executable, __file__, "spark", asked.spark, table, str(folder / "run.parquet")])
            forms["Spark local[2]"] = f"{asked.spark}/{table}"
        for form, path in forms.items():
            if (key := f"{form}, {rows:,} rows") not in cells:
                command = [sys.executable, "-c", _EVALUATE, str(folder / "qrels.txt"), path]
                sample = run(command, {"TMPDIR": str(folder)})
                took = {"seconds": sample.seconds, "cpu": sample.cpu, "mb": sample.megabytes}
                cells[key] = {"form": form, "rows": rows, **took, "sums": sample.output}
                kept.write_text(json.dumps(cells), encoding="utf-8")
                print(f"{key}: {sample.cpu:.1f} CPU s, {sample.megabytes:.0f} MB", file=sys.stderr, flush=True)
        if len({cell["sums"] for cell in cells.values() if cell["rows"] == rows}) > 1:
            raise SystemExit(f"{rows} rows: the forms do not give the same scores")
    run([sys.executable, __file__, "draw", str(kept)])
    write(PAGE, _page(cells.values()), BEGIN, END)


def _page(cells: Iterable[Cell]) -> str:
    """Write the table: a line for each form and number of rows."""
    heads = "| rows | run | CPU s | CPU µs a row | wall s | peak MB |\n|---:|---|---:|---:|---:|---:|"
    lines = [
        "| {rows:,} | {form} | {cpu:.1f} | {row:.2f} | {seconds:.1f} | {mb:,.0f} |".format(
            row=1e6 * cell["cpu"] / cell["rows"], **cell
        )
        for cell in sorted(cells, key=lambda cell: cell["rows"])
    ]
    said = (
        f"Made by `bench/rows.py`, on {os.cpu_count()} cores shared with other work; each line is one process, and "
        "for Spark the one that asks, without the server."
    )
    return "\n".join((said, "", "![Rows against time and memory](images/rows.svg)", "", heads, *lines))


def make(rows: str, folder: str) -> None:
    """Write the qrels, and one shuffled run in every form, where they are not there yet."""
    import gzip
    import shutil

    import duckdb
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    count, place = int(rows), Path(folder)
    if (place / "made").exists():
        return

    def doc(at: object) -> object:
        """Name a document: no topic has one twice, as the factor and the number of passages share no divisor."""
        return (at * 4_000_037) % 8_841_823  # type: ignore[operator]

    with (place / "qrels.txt").open("w") as file:
        for topic in range(count // DEPTH):
            for rank in sorted({topic * 7 % 40, topic * 13 % 300}):
                file.write(f"{topic + DEPTH} 0 {doc(topic * DEPTH + rank)} {1 + rank % 2}\n")
    order = np.random.default_rng(count).permutation(np.arange(count, dtype=np.int32))
    fields = pa.schema({"query_id": pa.string(), "doc_id": pa.string(), "score": pa.float64()})
    plain = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    with parquet.ParquetWriter(place / "run.parquet", fields) as table, (place / "run.txt").open("wb") as text:
        for start in range(0, count, _CHUNK):
            at = order[start : start + _CHUNK].astype(np.int64)
            topic, rank = at // DEPTH, at % DEPTH
            ids = [pa.array(numbers).cast(pa.string()) for numbers in (topic + DEPTH, doc(at))]
            part = pa.table([*ids, pa.array((DEPTH - rank) / 8 + topic % 7 / 4)], fields)
            table.write_table(part, row_group_size=1 << 20)
            constant = pa.array(["Q0"] * len(at)), pa.array(["b"] * len(at))
            columns = [part[0], constant[0], part[1], pa.array(rank + 1), part[2], constant[1]]
            csv.write_csv(pa.table(columns, list("abcdef")), text, plain)
    with (place / "run.txt").open("rb") as text, gzip.open(place / "run.txt.gz", "wb", 1) as packed:
        shutil.copyfileobj(text, packed, 1 << 20)
    with duckdb.connect(place / "runs.duckdb") as con:
        con.sql("SET memory_limit = '2GB'")
        con.sql(f"CREATE TABLE run AS FROM '{place / 'run.parquet'}'")
    (place / "made").touch()


def spark(address: str, table: str, path: str) -> None:
    """Make a table of a Parquet file there."""
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(address).create()  # type: ignore[reportUnknownMemberType]
    session.read.parquet(path).write.mode("overwrite").saveAsTable(table)


def draw(cells: str) -> None:
    """Draw time and memory against rows."""
    from judged.results.charts import PALETTE, altair, apply_theme, save_chart

    alt = altair()
    found: list[Cell] = list(json.loads(Path(cells).read_text(encoding="utf-8")).values())
    forms = sorted({cell["form"] for cell in found}, key=lambda form: [*FORMS, form].index(form))
    kept = [{name: cell[name] for name in ("form", "rows", "cpu", "mb")} for cell in found]
    ticks = alt.Axis(format="~s", values=[10**power for power in range(4, 9)])
    panels = [
        alt.Chart(alt.InlineData(values=kept), width=300, height=240)
        .mark_line(point=True)
        .encode(
            x=alt.X("rows:Q", title="rows, in any order", scale=alt.Scale(type="log"), axis=ticks),
            y=alt.Y(f"{name}:Q", title=title, scale=alt.Scale(type=kind)),
            color=alt.Color("form:N", title=None, scale=alt.Scale(domain=forms, range=PALETTE[: len(forms)])),
            strokeDash=alt.StrokeDash("form:N", title=None, scale=alt.Scale(domain=forms)),
        )
        for name, title, kind in (("cpu", "CPU seconds", "log"), ("mb", "peak memory in MB", "linear"))
    ]
    save_chart(apply_theme(alt.hconcat(*panels)), FIGURE)


JOBS: dict[str, Callable[..., None]] = {"make": make, "spark": spark, "draw": draw}

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in JOBS:
        JOBS[sys.argv[1]](*sys.argv[2:])
    else:
        main()
