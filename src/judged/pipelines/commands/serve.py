"""Options of `judged serve` for traces, answers, agents, and experiments, and the data that they open."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from judged.pipelines.experiments.results import Results

OPTIONS = (
    click.option(
        "--traces",
        multiple=True,
        metavar="FILE",
        help="File of traces that 'judged traces' can read. Repeat for more files.",
    ),
    click.option(
        "--entities",
        metavar="FILE",
        help="Entities for the page of content gaps: a file that 'judged traces gaps' can read. Use --entities with"
        " --documents.",
    ),
    click.option(
        "--documents",
        metavar="FILE",
        help="Documents with their entities or titles: a file that 'judged traces gaps' can read.",
    ),
    click.option("--rag", metavar="RESPONSES", help="Generated answers: a folder or file that 'judged rag' can read."),
    click.option(
        "--trajectories",
        multiple=True,
        metavar="[NAME=]FILE",
        help="Trajectories of agents: a folder or file that 'judged trajectories' can read. Repeat for more files.",
    ),
    click.option(
        "--experiment",
        metavar="PLAN",
        help="Plan file of 'judged experiment', to try queries in the browser. Use this option instead of QRELS.",
    ),
    click.option(
        "--results",
        metavar="FOLDER",
        help="With --experiment: folder with the results of PLAN.  [default: the default output folder of 'judged"
        " experiment run', if this folder exists]",
    ),
)
"""Options of `judged serve`."""


def workspace_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `open_workspace` from the options of traces, answers, agents, and experiments."""
    if options["experiment"]:
        refused = [f"--{name}" for name in ("queries", "texts", "traces") if options[name]]
        if refused or options["qrels"] is not None:
            raise click.UsageError(
                f"{next(iter(refused), 'QRELS')} cannot be combined with --experiment: the plan names its own files"
            )
    elif options["results"]:
        raise click.UsageError("--results requires --experiment PLAN, with the plan that produced the results")
    elif options["traces"] and options["qrels"] is None:
        raise click.UsageError("--traces requires QRELS")
    parts = _open_parts(options)
    if not options["experiment"]:
        return {"parts": parts}
    plan_parts = experiment_arguments(options["experiment"], options["results"])
    return plan_parts | {"parts": parts | plan_parts["parts"]}


def _open_parts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Read the files of traces, entities, documents, answers, and trajectories."""
    from judged.data.topics import Topics
    from judged.pipelines.commands.trajectories import read_named_trajectories
    from judged.pipelines.rag import Responses
    from judged.pipelines.traces import Entities, read_traces
    from judged.pipelines.traces.entities import entities_of_documents

    parts: dict[str, Any] = {}
    if options["traces"]:
        topics = None if options["queries"] is None else Topics.of(options["queries"])
        parts["traces"] = read_traces(options["traces"], topics=topics)
    if options["entities"]:
        parts["entities"] = Entities.of(options["entities"])
    if options["documents"]:
        parts["documents"] = entities_of_documents(options["documents"], catalog=parts.get("entities"))
    if options["rag"]:
        parts["responses"] = Responses.of(options["rag"])
    if options["trajectories"]:
        trajectories = read_named_trajectories(options["trajectories"], topics=options["queries"])
        parts["trajectories"] = lambda: trajectories  # a function, because those of the sample take a second
    return parts


def experiment_arguments(plan: str, folder: str | None) -> dict[str, Any]:
    """Return arguments of `open_workspace` for a plan, with the runs of its configurations if it was run."""
    from judged.pipelines.experiments import load

    results_folder = folder or Path(plan).stem
    results = load(results_folder) if folder or Path(results_folder, "plan.json").is_file() else None
    return plan_arguments(plan, results) | {"title": f"Experiment {Path(plan).stem}"}


def plan_arguments(plan: Any, results: Results | None = None) -> dict[str, Any]:
    """Return arguments of `open_workspace` for a plan and its results.

    >>> from judged.data import sample
    >>> from judged.interface.pages.workspace import open_workspace
    >>> names = {"documents": "docs.jsonl.gz", "queries": "queries.jsonl", "qrels": "qrels.txt"}
    >>> files = {key: str(sample.FOLDER / name) for key, name in names.items()}
    >>> opened = open_workspace(**plan_arguments(files | {"control": {"engine": "sqlite"}}))
    >>> len(opened.query_ids), opened.run_names, opened.parts["trials"].design_space.engines
    (48, (), ('sqlite',))
    """
    from judged.pipelines.experiments import Plan
    from judged.pipelines.experiments.trial import TrialEngines

    trials = TrialEngines(Plan.of(plan))
    parts: dict[str, Any] = {"trials": trials} if results is None else {"trials": trials, "results": results}
    return {
        "qrels": trials.qrels,
        "runs": [] if results is None else [results.run(name) for name in results.levels],
        "queries": trials.queries,
        "texts": trials.texts,
        "title": "Experiment",
        "control": "" if results is None else results.control,
        "parts": parts,
    }


def sample_parts() -> dict[str, Any]:
    """Return traces, entities, trial engines, trajectories, and answers of the sample data."""
    from judged.data import sample
    from judged.pipelines.experiments import Plan
    from judged.pipelines.experiments.trial import TrialEngines
    from judged.pipelines.rag import Responses
    from judged.pipelines.traces import Entities
    from judged.pipelines.traces.entities import entities_of_documents
    from judged.pipelines.traces.recorder import sample_traces
    from judged.pipelines.trajectories.sample import sample_trajectories

    names = {"file": ["files"], "list": [], "password": ["getpass"], "shell": [], "thread": ["threads", "threading"]}
    entities = Entities.of([{"entity": name, "alias": aliases} for name, aliases in names.items()])
    parts: dict[str, Any] = {
        "traces": sample_traces(),
        "trajectories": cache(sample_trajectories),
        "entities": entities,
        "documents": entities_of_documents(sample.FOLDER / "docs.jsonl.gz", catalog=entities),
        "trials": TrialEngines(Plan.read(sample.FOLDER / "experiment.toml")),
    }
    answers = sample.FOLDER / "responses"
    return parts | ({"responses": Responses.of(answers)} if answers.is_dir() else {})
