"""`judged check`: what is wrong with these files, where, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("check")
@click.argument("qrels")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@answer_options()
@click.option("--texts", metavar="CORPUS", help="Also find documents that are not in this corpus.")
@shared(*FORMATS)
def check_command(qrels: str, runs: tuple[str, ...], give: Give, **options: str | None) -> None:
    """Look in QRELS and RUNs for anything that would make numbers wrong.

    Exit code 0: no errors, warnings at most; 1: errors; 2: a file cannot be read at all.
    """
    from judged.data.check_files import check

    give.keep(qrels, *runs, options["texts"])
    findings = check(qrels, runs, **options)
    give(findings)
    raise SystemExit(1 if findings.errors else 0)


MEASURES = ("nDCG@10", "AP(rel=2)", "RR(rel=2)@10", "R(rel=2)@50")

_WHAT = """\
The sample is a small real test collection, "find the standard-library function": 48 needs in plain
words, 2,498 docstrings of Python's standard library, 1,613 judgments from 0 (no use) to 3 (exactly
this), and the rankings of eight search methods. Here is how good each of them is:
"""

_READ = """
Each number is a mean over the 48 topics, with a 95% interval for the mean over all topics of this
kind. nDCG@10 looks at the first page, AP at the whole ranking, RR at the first good result,
R@50 at what a reranker could still find. rel=2 counts grades 2 and 3 as relevant.

Next, copy the sample to a folder and try more commands (in a clone, first: . .venv/bin/activate):

  judged demo --to sample
  judged evaluate sample/qrels.txt sample/runs/*.run.gz
  judged evaluate sample/qrels.txt sample/runs/rrf.run.gz -m nDCG@10 --per-topic --queries sample/queries.jsonl
  judged check sample/qrels.txt sample/runs/bm25_title.run.gz
  judged measures nDCG
  judged traces funnel sample/qrels.txt sample/traces.jsonl
  judged experiment run sample/experiment.toml
  judged online metrics sample/simulated_log.ndjson.gz    # takes pip install 'judged[logs]'"""


@click.command("demo")
@click.option(
    "--to", metavar="FOLDER", type=click.Path(path_type=Path), help="Copy the sample to a new folder instead."
)
def demo_command(to: Path | None) -> None:
    """Evaluate eight rankers on the built-in sample."""
    from judged.data import sample

    if to is not None:
        from judged.pipelines.traces import write_traces
        from judged.pipelines.traces.own import sample_traces

        with sample.copied(to) as folder:
            write_traces(sample_traces(), folder / "traces.jsonl")
        files = "qrels.txt, queries.jsonl, docs.jsonl.gz, runs/, experiment.toml, traces.jsonl, simulated_log.ndjson.gz"
        click.echo(f"the sample is in {to}: {files}, simulated_interleaved.ndjson.gz, README.md")
        return
    import warnings

    from judged.errors import JudgedWarning
    from judged.scoring.evaluation import evaluate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        scores = evaluate(sample.qrels(), sample.runs(), MEASURES)
    click.echo(_WHAT)
    click.echo(scores.text(output.width()))
    output.notes(scores.warnings)
    click.echo(_READ)


@click.group("collection", short_help="What a test collection can tell, and what it cannot.")
def collection() -> None:
    """Look at judgments and the runs that they were made from as a test collection."""


@collection.command("check", short_help="Say how far judgments reach, to whom they are fair, and what they can detect.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-m", "--measure", default="nDCG@10", show_default=True, metavar="NAME", help="By which runs are compared."
)
@click.option("--cutoff", type=click.IntRange(1), default=10, show_default=True, help="Of documents to be judged.")
@click.option(
    "--pool-depth",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many documents of each run were judged for each topic.",
)
@click.option("--group", multiple=True, metavar="RUN=GROUP", help="Leave out runs of one group together.")
@click.option("--labels", metavar="LABELS", help="Who gave the judgments: a store of labels, or a table of them.")
@answer_options()
@shared(*FORMATS)
def check(qrels: str, runs: tuple[str, ...], group: tuple[str, ...], give: Give, **options: Any) -> None:
    """Say what QRELS can tell about RUNs like those that they were made from.

    How many documents are judged, what a run loses that was not pooled, how far judges agree, what labels cost,
    and which difference could be found.
    """
    from judged.cli.scoring import groups_of
    from judged.labels.collection import check_collection

    labels = options["labels"]
    judgments, given = give.inputs(qrels, runs, options, labels if labels and "://" not in labels else None)
    give(check_collection(judgments, given, groups=groups_of(group), **options))


@click.command("pool", short_help="Choose which documents of several runs to judge.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--depth", type=click.IntRange(1), default=100, show_default=True, metavar="K", help="Pool the first K of each run."
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    metavar="N",
    help="Spend N labels in all where most is found (MaxMean): asks for the next ones after those of --qrels.",
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="Draw N documents in all at random, with known probabilities, for 'judged labels estimate'.",
)
@click.option("--qrels", metavar="QRELS", help="With --budget: the labels so far.")
@click.option("--queries", metavar="FILE", help="Pool only the topics of this file.")
@click.option(
    "--batch",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="With --budget: how many documents of each topic to ask for at a time.",
)
@click.option(
    "--retention",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="With --budget: how much of what is known of a run remains after its next document; 1 for all.",
)
@click.option("--rel", type=float, default=1, show_default=True, help="With --budget: the lowest relevant grade.")
@click.option(
    "--strata",
    default="10,30",
    show_default=True,
    metavar="K,...",
    help="With --sample: best ranks at which strata end.",
)
@click.option(
    "--rates", metavar="R,...", help="With --sample: how many times as often each stratum's documents are drawn."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the sample.")
@shared("run_format")
@answer_options()
def pool_command(
    runs: tuple[str, ...], run_format: str | None, strata: str, rates: str | None, give: Give, **options: Any
) -> None:
    """Choose which documents of the RUNs to judge: all of the first K, the most promising N, or a sample of N.

    As CSV ('-o pool.csv') it is the list for judging: each pair with its stratum and probability.
    """
    from judged.data.qrels import Qrels
    from judged.labels import pool

    given = inputs.runs_at(runs, run_format)
    give.keep(options["qrels"], options["queries"], *(run.where for run in given))
    if options["qrels"] is not None:
        options["qrels"] = Qrels.read(options["qrels"])
    options["strata"] = [int(end) for end in _numbers("--strata", strata)]
    options["rates"] = None if rates is None else _numbers("--rates", rates)
    give(pool(given, **options))


def _numbers(option: str, text: str) -> list[float]:
    from judged.errors import InputError
    from judged.results.decimals import read_number

    try:
        return [read_number(part) for part in text.split(",") if part]
    except ValueError as error:
        raise InputError(f"{option} {text!r}: {error}", fix="write numbers with commas between") from None
