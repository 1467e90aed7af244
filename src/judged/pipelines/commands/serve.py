"""Options of `judged serve` for traces, answers, and experiments, and what they open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from judged.pipelines.experiments.results import Results

OPTIONS = (
    click.option("--traces", multiple=True, metavar="FILE", help="Traces, as for 'judged traces'. Repeat for more."),
    click.option("--rag", metavar="RESPONSES", help="Answers, as for 'judged rag'."),
    click.option(
        "--experiment", metavar="PLAN", help="Engines to try queries on, as for 'judged experiment'; no QRELS."
    ),
    click.option(
        "--results",
        metavar="FOLDER",
        help="What running PLAN left behind.  [default: where 'judged experiment run' puts it, if it was run]",
    ),
)
"""Options of `judged serve`."""


def workspace_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `open_workspace`: traces, answers, and what the plan of an experiment names."""
    from judged.data.topics import Topics
    from judged.pipelines.rag import Responses
    from judged.pipelines.traces import read_traces

    if options["experiment"]:
        refused = [f"--{name}" for name in ("queries", "texts", "traces") if options[name]]
        if refused or options["qrels"] is not None:
            raise click.UsageError(
                f"{next(iter(refused), 'QRELS')} goes without --experiment: the plan names its own files"
            )
    elif options["results"]:
        raise click.UsageError("--results needs --experiment, the plan that they are of")
    elif options["traces"] and options["qrels"] is None:
        raise click.UsageError("--traces needs QRELS")
    parts: dict[str, Any] = {}
    if options["traces"]:
        topics = None if options["queries"] is None else Topics.of(options["queries"])
        parts["traces"] = read_traces(options["traces"], topics=topics)
    if options["rag"]:
        parts["responses"] = Responses.of(options["rag"])
    if not options["experiment"]:
        return {"parts": parts}
    made = experiment(options["experiment"], options["results"])
    return made | {"parts": parts | made["parts"]}


def experiment(plan: str, folder: str | None) -> dict[str, Any]:
    """Return arguments of `open_workspace` for a plan, with the runs of its configurations where it was run."""
    from judged.pipelines.experiments import load

    place = folder or Path(plan).stem
    results = load(place) if folder or Path(place, "plan.json").is_file() else None
    return of_plan(plan, results) | {"title": f"experiment {Path(plan).stem}"}


def of_plan(plan: Any, results: Results | None = None) -> dict[str, Any]:
    """Return arguments of `open_workspace` for a plan and its results.

    >>> from judged.data import sample
    >>> from judged.interface.pages.workspace import open_workspace
    >>> names = {"documents": "docs.jsonl.gz", "queries": "queries.jsonl", "qrels": "qrels.txt"}
    >>> files = {key: str(sample.FOLDER / name) for key, name in names.items()}
    >>> opened = open_workspace(**of_plan(files | {"control": {"engine": "sqlite"}}))
    >>> len(opened.query_ids), opened.run_names, opened.parts["trials"].choices.engines
    (48, (), ('sqlite',))
    """
    from judged.pipelines.experiments import Plan
    from judged.pipelines.experiments.trial import Trials

    trials = Trials(Plan.of(plan))
    parts: dict[str, Any] = {"trials": trials} if results is None else {"trials": trials, "results": results}
    return {
        "qrels": trials.qrels,
        "runs": [] if results is None else [results.run(name) for name in results.levels],
        "queries": trials.queries,
        "texts": trials.texts,
        "title": "an experiment",
        "control": "" if results is None else results.control,
        "parts": parts,
    }


def sample_parts() -> dict[str, Any]:
    """Return the parts of the sample."""
    from judged.data import sample
    from judged.pipelines.experiments import Plan
    from judged.pipelines.experiments.trial import Trials
    from judged.pipelines.rag import Responses
    from judged.pipelines.traces.recorder import sample_traces

    parts: dict[str, Any] = {"traces": sample_traces(), "trials": Trials(Plan.read(sample.FOLDER / "experiment.toml"))}
    answers = sample.FOLDER / "responses"
    return parts | ({"responses": Responses.of(answers)} if answers.is_dir() else {})
