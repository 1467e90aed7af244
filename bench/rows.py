"""Measure time and memory by number of rows, from 10^4 to 10^8 in random order, for docs/any-size.md.

`python bench/rows.py [--folder F] [--most 100000000] [--spark sc://HOST:PORT]` generates missing data, evaluates each
format in a separate process, and writes the table and the figure. Earlier measurements in the folder are reused. The
data of 10^8 rows need 12 GB, and temporarily twice as much for DuckDB. A Spark server must be able to read the folder.
This module imports only the standard library, for the reason in processes.py; heavy work is in separate processes.
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
    """Generate the runs, measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "judged-rows")
    parser.add_argument("--most", type=int, default=10**8)
    parser.add_argument("--spark", help="URL of a Spark server: sc://HOST:PORT")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    cells_file = options.folder / "cells.json"
    cells: dict[str, Cell] = json.loads(cells_file.read_text(encoding="utf-8")) if cells_file.exists() else {}
    for rows in (size for size in SIZES if size <= options.most):
        folder = options.folder / str(rows)
        folder.mkdir(exist_ok=True)
        run([sys.executable, __file__, "generate", str(rows), str(folder)])
        forms = {name: str(folder / file) for name, file in FORMS.items()}
        if options.spark:
            table = f"judged_rows_{rows}"
            run([sys.executable, __file__, "spark", options.spark, table, str(folder / "run.parquet")])
            forms["Spark local[2]"] = f"{options.spark}/{table}"
        for form, path in forms.items():
            if (key := f"{form}, {rows:,} rows") not in cells:
                command = [sys.executable, "-c", _EVALUATE, str(folder / "qrels.txt"), path]
                sample = run(command, {"TMPDIR": str(folder)})
                measurements = {"seconds": sample.seconds, "cpu": sample.cpu, "mb": sample.megabytes}
                cells[key] = {"form": form, "rows": rows, **measurements, "sums": sample.output}
                cells_file.write_text(json.dumps(cells), encoding="utf-8")
                print(f"{key}: {sample.cpu:.1f} CPU s, {sample.megabytes:.0f} MB", file=sys.stderr, flush=True)
        if len({cell["sums"] for cell in cells.values() if cell["rows"] == rows}) > 1:
            raise SystemExit(f"{rows} rows: formats must have equal scores")
    run([sys.executable, __file__, "draw", str(cells_file)])
    write(PAGE, _page(cells.values()), BEGIN, END)


def _page(cells: Iterable[Cell]) -> str:
    """Format the table: one line per format and number of rows."""
    heads = "| rows | run | CPU s | CPU µs a row | wall s | peak MB |\n|---:|---|---:|---:|---:|---:|"
    lines = [
        "| {rows:,} | {form} | {cpu:.1f} | {row:.2f} | {seconds:.1f} | {mb:,.0f} |".format(
            row=1e6 * cell["cpu"] / cell["rows"], **cell
        )
        for cell in sorted(cells, key=lambda cell: cell["rows"])
        if cell["rows"] >= 1_000_000
    ]
    introduction = (
        f"Measured by `bench/rows.py` on {os.cpu_count()} shared cores, one process each; for Spark, the client without"
        " the server. The chart also shows smaller runs."
    )
    return "\n".join((introduction, "", "![Rows against time and memory](images/rows.svg)", "", heads, *lines))


def generate(rows: str, folder: str) -> None:
    """Write the qrels, and one shuffled run in each format, if they are missing."""
    import gzip
    import shutil

    import duckdb
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    count, folder_path = int(rows), Path(folder)
    if (folder_path / "complete").exists():
        return

    def doc(index: object) -> object:
        """Return a document ID. IDs within a topic are distinct, because factor and modulus are coprime."""
        return (index * 4_000_037) % 8_841_823  # type: ignore[operator]

    with (folder_path / "qrels.txt").open("w") as file:
        for topic in range(count // DEPTH):
            for rank in sorted({topic * 7 % 40, topic * 13 % 300}):
                file.write(f"{topic + DEPTH} 0 {doc(topic * DEPTH + rank)} {1 + rank % 2}\n")
    order = np.random.default_rng(count).permutation(np.arange(count, dtype=np.int32))
    fields = pa.schema({"query_id": pa.string(), "doc_id": pa.string(), "score": pa.float64()})
    plain = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    with (
        parquet.ParquetWriter(folder_path / "run.parquet", fields) as table,
        (folder_path / "run.txt").open("wb") as text,
    ):
        for start in range(0, count, _CHUNK):
            index = order[start : start + _CHUNK].astype(np.int64)
            topic, rank = index // DEPTH, index % DEPTH
            ids = [pa.array(numbers).cast(pa.string()) for numbers in (topic + DEPTH, doc(index))]
            part = pa.table([*ids, pa.array((DEPTH - rank) / 8 + topic % 7 / 4)], fields)
            table.write_table(part, row_group_size=1 << 20)
            constant = pa.array(["Q0"] * len(index)), pa.array(["b"] * len(index))
            columns = [part[0], constant[0], part[1], pa.array(rank + 1), part[2], constant[1]]
            csv.write_csv(pa.table(columns, list("abcdef")), text, plain)
    with (folder_path / "run.txt").open("rb") as text, gzip.open(folder_path / "run.txt.gz", "wb", 1) as packed:
        shutil.copyfileobj(text, packed, 1 << 20)
    with duckdb.connect(folder_path / "runs.duckdb") as con:
        con.sql("SET memory_limit = '2GB'")
        con.sql(f"CREATE TABLE run AS FROM '{folder_path / 'run.parquet'}'")
    (folder_path / "complete").touch()


def spark(address: str, table: str, path: str) -> None:
    """Create a table from a Parquet file on the server."""
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(address).create()  # type: ignore[reportUnknownMemberType]
    session.read.parquet(path).write.mode("overwrite").saveAsTable(table)


def draw(cells: str) -> None:
    """Plot time and memory against rows."""
    from judged.results.charts import PALETTE, altair, apply_theme, save_chart

    alt = altair()
    all_cells: list[Cell] = list(json.loads(Path(cells).read_text(encoding="utf-8")).values())
    forms = sorted({cell["form"] for cell in all_cells}, key=lambda form: [*FORMS, form].index(form))
    values = [{name: cell[name] for name in ("form", "rows", "cpu", "mb")} for cell in all_cells]
    ticks = alt.Axis(format="~s", values=[10**power for power in range(4, 9)])
    panels = [
        alt.Chart(alt.InlineData(values=values), width=300, height=240)
        .mark_line(point=True)
        .encode(
            x=alt.X("rows:Q", title="rows in random order", scale=alt.Scale(type="log"), axis=ticks),
            y=alt.Y(f"{name}:Q", title=title, scale=alt.Scale(type=kind)),
            color=alt.Color("form:N", title=None, scale=alt.Scale(domain=forms, range=PALETTE[: len(forms)])),
            strokeDash=alt.StrokeDash("form:N", title=None, scale=alt.Scale(domain=forms)),
        )
        for name, title, kind in (("cpu", "CPU seconds", "log"), ("mb", "peak memory in MB", "linear"))
    ]
    save_chart(apply_theme(alt.hconcat(*panels)), FIGURE)


JOBS: dict[str, Callable[..., None]] = {"generate": generate, "spark": spark, "draw": draw}

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in JOBS:
        JOBS[sys.argv[1]](*sys.argv[2:])
    else:
        main()
