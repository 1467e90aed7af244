"""`judged check`, `judged convert`, and `judged demo`: check and convert input files, and evaluate the sample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.components import all_components, load
from judged.interface.arguments import answer_options, keep_inputs, print_warnings, terminal_width
from judged.interface.options import READING, Choice, shared

if TYPE_CHECKING:
    from judged.interface.arguments import OutputOptions


@click.command("check")
@shared("qrels", "some_runs")
@answer_options()
@shared("texts", metavar="CORPUS", help="Corpus: also report documents of QRELS and RUNs that are not in this corpus.")
@shared(*READING)
def check_command(qrels: str, runs: tuple[str, ...], output: OutputOptions, **options: str | None) -> None:
    """Check QRELS and RUNs for errors that would make scores wrong, or say what a single file contains.

    A single file may be of any kind that judged reads: judgments, a run, query texts, labels, a log, or RAG answers.

    Exit code 0: no errors, but possibly warnings; 1: errors; 2: a file cannot be read.
    """
    from judged.data.check_files import check, check_one

    output.keep(qrels, *runs, options["texts"])
    findings = check(qrels, runs, **options) if runs or any(options.values()) else check_one(qrels)
    output(findings)
    raise SystemExit(1 if findings.errors else 0)


@click.command("convert")
@click.argument("file")
@click.option("-o", "--out", required=True, metavar="FILE", help="File to write.")
@click.option(
    "--to",
    type=Choice("judged.data.convert_files:ConvertFormat"),
    help="Format of the output.  [default: by the extension of the output file]",
)
@click.option("--kind", type=Choice(("qrels", "run")), help="Content of FILE.  [default: detected]")
@click.option("--min-grade", type=float, metavar="GRADE", help="Write only judgments with at least this grade.")
@click.option("--since", metavar="TIME", help="Write only judgments with this time or a later time.")
@shared("columns", "normalize_ids")
def convert_command(file: str, out: str, to: Any, kind: Any, **options: Any) -> None:
    r"""Convert FILE, judgments or a run in any layout that is read, to another format.

    An error is printed if the format cannot hold the content unchanged.

    \b
    Examples:
      judged convert ratings.dat -o qrels.txt --min-grade 4
      judged convert rank_eval_response.json -o run.jsonl
    """
    from judged.data.convert_files import convert

    keep_inputs(Path(out), [file])
    written = convert(file, out, to=to, kind=kind, **options)
    click.echo(f"wrote {written!r} to {out}")


MEASURES = ("nDCG@10", "AP(rel=2)", "RR(rel=2)@10", "R(rel=2)@50")

_INTRODUCTION = """\
The sample is a small real test collection, "find the standard-library function". The sample has
48 queries, 2,498 docstrings of Python's standard library, 1,613 judgments from 0 (useless) to 3 (the best
answer), and the runs of eight search methods. The table shows the scores of the eight runs:
"""

_EXPLANATION = """
Each score is a mean over the 48 topics, with a 95% confidence interval for the mean over all topics
of this kind. nDCG@10 measures the first page, AP the whole ranking, RR the rank of the first relevant
document, and R@50 the candidates that a reranker could use. With rel=2, grades 2 and 3 are relevant.

Next, copy the sample to a folder and try more commands. In a clone of the repository, first run:
  . .venv/bin/activate

  judged demo --to sample
  judged evaluate sample/qrels.txt sample/runs/*.run.gz
  judged evaluate sample/qrels.txt sample/runs/rrf.run.gz -m nDCG@10 --per-topic --queries sample/queries.jsonl
  judged check sample/qrels.txt sample/runs/bm25_title.run.gz
  judged measures nDCG
  judged traces funnel sample/qrels.txt sample/traces.jsonl
  judged trajectories where sample/trajectories.jsonl --qrels sample/qrels.txt --rel 2
  judged experiment run sample/experiment.toml
  judged online metrics sample/simulated_log.ndjson.gz    # requires pip install 'judged[logs]'"""


@click.command("demo")
@click.option(
    "--to",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Copy the sample to a new folder, instead of evaluating it.",
)
def demo_command(to: Path | None) -> None:
    """Evaluate eight rankers on the built-in sample."""
    from judged.data import sample

    if to is not None:
        component_files = {name: place for component in all_components() for name, place in component.sample.items()}
        with sample.copied(to) as folder:
            for name, place in component_files.items():
                load(place)(folder / name)
        click.echo(f"wrote the sample to {to}: {', '.join(sorted(p.name + '/' * p.is_dir() for p in to.iterdir()))}")
        return
    import warnings

    from judged.errors import JudgedWarning
    from judged.scoring.evaluation import evaluate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        scores = evaluate(sample.qrels(), sample.runs(), MEASURES)
    click.echo(_INTRODUCTION)
    click.echo(scores.text(terminal_width()))
    print_warnings(scores.warnings)
    click.echo(_EXPLANATION)


@click.command("plugins")
@answer_options()
def plugins_command(output: OutputOptions) -> None:
    """List what other installed packages add to judged, and what cannot be used, with the reason.

    Exit code 0: everything can be used; 1: something cannot be used.
    """
    from judged.interface.plugins import plugins

    additions = plugins()
    output(additions)
    raise SystemExit(1 if additions.problems else 0)
