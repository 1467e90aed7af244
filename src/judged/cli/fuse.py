"""`judged fuse`: one run of several, and which weights they deserve."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared
from judged.errors import InputError
from judged.results.decimals import read_number

if TYPE_CHECKING:
    from judged.cli.formats import Give

_FILE = click.Path(path_type=Path)


@click.command("fuse", short_help="Combine several runs into one, and choose their weights.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--to", "target", type=_FILE, metavar="FILE", help="Write the fused run to this file.")
@click.option(
    "--algorithm",
    type=click.Choice(["rrf", "sum", "mnz", "max", "borda"]),
    default="rrf",
    show_default=True,
    help="Reciprocal rank fusion; CombSUM, CombMNZ or CombMAX of normalised scores; Borda count.",
)
@click.option("--weight", "weights", multiple=True, metavar="RUN=W", help="Weight of a run.  [default: 1 each]")
@click.option(
    "--rrf-k", type=float, default=60, show_default=True, metavar="K", help="For rrf: the constant added to each rank."
)
@click.option(
    "--normalise",
    type=click.Choice(["min-max", "z-score", "sum", "rank", "none"]),
    default="min-max",
    show_default=True,
    help="For sum, mnz and max: how the scores of each run are normalised.",
)
@click.option(
    "--missing",
    type=click.Choice(["skip", "last", "share"]),
    help="What a run contributes for a document that it does not have: nothing; as if it came right after its last; or"
    " the average of the ranks that remain.  [default: skip; last for z-scores, share for borda]",
)
@shared("depth", "order")
@click.option(
    "--cutoff", type=click.IntRange(1), metavar="N", help="Keep the first N documents of each topic.  [default: all]"
)
@click.option("--traces", type=_FILE, metavar="FILE", help="Write the runs and their fusion to this file, as traces.")
@click.option(
    "--qrels",
    metavar="QRELS",
    help="Choose the weights by a measure, and show what the choice is worth on other topics.",
)
@click.option(
    "-m",
    "--measure",
    default="nDCG@10",
    show_default=True,
    metavar="NAME",
    help="The measure by which weights are chosen.",
)
@click.option(
    "--steps", type=int, default=10, show_default=True, help="Weights are multiples of 1/STEPS that add up to 1."
)
@click.option(
    "--folds",
    type=int,
    default=10,
    show_default=True,
    help="Number of folds in which the choice of weights is cross-validated.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the folds and the tests.")
@shared("level")
@answer_options()
@shared(*FORMATS)
def command(
    runs: tuple[str, ...],
    target: Path | None,
    weights: tuple[str, ...],
    cutoff: int | None,
    traces: Path | None,
    qrels: str | None,
    qrels_format: str | None,
    run_format: str | None,
    give: Give,
    **options: Any,
) -> None:
    """Combine the RUNs into one: by ranks or by scores, with weights, and with a policy for documents that a run lacks.

    With --qrels, weights are chosen by a measure, and cross-validation over topics shows what the choice is worth.
    """
    from judged.comparison.fusion import choose_weights, fuse
    from judged.data.qrels import Qrels
    from judged.data.write import write_run
    from judged.pipelines.traces import traces_of_runs, write_traces

    given = inputs.runs_at(runs, run_format)
    for path in (target, traces, give.out):
        inputs.keep_inputs(path, [run.where for run in given] + ([qrels] if qrels else []))
    if qrels is None and target is None and traces is None:
        fix = "--to FILE for the run, --traces FILE for traces, or --qrels QRELS to choose weights"
        raise InputError("nothing is asked for", fix=f"give {fix}")
    name = target.name.partition(".")[0] if target else ""
    choosing = {option: options.pop(option) for option in ("measure", "steps", "folds", "seed", "level")}
    if qrels is None:
        fused = fuse(given, weights=_weights(weights) if weights else None, cutoff=cutoff, name=name, **options)
    elif weights:
        raise InputError(
            "--weight gives the weights, and --qrels asks for them to be chosen", fix="leave out one of them"
        )
    else:
        answer = choose_weights(Qrels.read(qrels, format=qrels_format), given, **choosing, **options)
        fused = answer.run(cutoff=cutoff, name=name)
        give(answer)
    if target is not None:
        write_run(fused, target)
    if traces is not None:
        stages = {run.name: run for run in given} | {"fused": fused}
        parents = dict.fromkeys(stages, ()) | {"fused": tuple(run.name for run in given)}
        write_traces(traces_of_runs(stages, parents=parents), traces)


def _weights(given: tuple[str, ...]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            weights[name] = read_number(number)
        except ValueError as error:
            raise InputError(f"--weight {text!r}: {number!r} {error}", fix="write RUN=W, such as bm25=0.7") from None
    return weights
