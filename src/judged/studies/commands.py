"""Command group `judged study`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface.arguments import answer_options, need_web, write_result
from judged.interface.options import LazyGroup, shared
from judged.results.decimals import counted

if TYPE_CHECKING:
    from judged.interface.arguments import OutputOptions


@click.group("study", cls=LazyGroup)
def study() -> None:
    """Plan, run, and analyze a user study, in which participants do the same tasks with several systems.

    DESIGN is a TOML file with systems, tasks, questionnaires, groups, and the order of tasks (docs/user-studies.md).
    """


@study.command("init", short_help="Write an example design of a study.")
@click.argument("design", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite an existing DESIGN.")
@click.option(
    "--term-weights",
    is_flag=True,
    help="Write a study of one search engine, in which participants weight the terms of their queries in half of the"
    " tasks.",
)
def init_command(design: Path, *, force: bool, term_weights: bool) -> None:
    """Write an example DESIGN with comments: a runnable study of two rankers of the sample."""
    from judged.data.files import exists
    from judged.studies import first_design

    if exists(design) and not force:
        raise InputError(
            "this file already exists", fix="use another name, or --force to overwrite the file", path=str(design)
        )
    write_result(first_design(design.name, term_weights=term_weights).rstrip("\n"), design)
    click.echo(f"Wrote {design}. Next: judged study check {design}")


@study.command("check", short_help="Check the files, the balance, and the duration of a study design.")
@click.argument("design")
@answer_options()
def check_command(design: str, output: OutputOptions) -> None:
    """Check the files of DESIGN, the balance of its task order, and the time per participant.

    Exit code 0: the study can run. 1: data is missing. 2: DESIGN is invalid.
    """
    from judged.studies import check_design, read_design

    output.keep(design)
    check = check_design(read_design(design))
    output(check)
    if not check.ready:
        raise SystemExit(1)


@study.command("plan", short_help="Compute the required numbers of participants and topics.")
@click.argument("design")
@click.option(
    "--difference",
    type=float,
    required=True,
    metavar="D",
    help="Smallest relevant difference between two systems, in the unit of the outcome.",
)
@click.option(
    "--pilot", metavar="FOLDER", help="Exported records of a pilot study, to estimate the standard deviations."
)
@click.option(
    "--outcome",
    metavar="NAME",
    help="Outcome of the pilot: `minutes`, `saved`, or the name of a questionnaire after each task.",
)
@click.option(
    "--trials",
    type=float,
    metavar="S",
    help="Residual standard deviation of single trials.  [default: from the pilot, otherwise 1]",
)
@click.option(
    "--people-by-system",
    type=float,
    metavar="S",
    help="Standard deviation of the interaction of participants and systems.  [default: from the pilot, otherwise 0.3]",
)
@click.option(
    "--topics-by-system",
    type=float,
    metavar="S",
    help="Standard deviation of the interaction of topics and systems.  [default: from the pilot, otherwise 0.3]",
)
@click.option(
    "--people",
    type=float,
    metavar="S",
    help="Standard deviation between participants, if each participant uses only one variant.  [default: from the"
    " pilot, otherwise 0]",
)
@shared("alpha", help="Significance level of the test.")
@shared("power")
@answer_options()
def plan_command(
    design: str,
    difference: float,
    output: OutputOptions,
    *,
    pilot: str | None,
    outcome: str | None,
    alpha: float,
    power: float,
    **sds: float | None,
) -> None:
    """Compute how many participants and topics are needed to detect a true difference between systems of DESIGN.

    The test treats participants and topics as random samples. With few topics, a larger number of participants alone
    cannot make a small difference detectable. Options with S are standard deviations in the unit of the outcome, and
    override the estimates from the pilot.
    """
    from judged.studies import Spreads, StudyRecords, pilot_spreads, plan_study, read_design

    output.keep(design)
    if (pilot is None) != (outcome is None):
        raise InputError(
            "--pilot and --outcome must be used together", fix="use --pilot FOLDER --outcome NAME, or neither"
        )
    study_design, spreads, notes = read_design(design), Spreads(0.0, 0.3, 0.3, 1.0), ()
    if pilot and outcome:
        spreads, notes = pilot_spreads(StudyRecords.read(pilot), study_design, outcome)
    spreads = replace(spreads, **{name: sd for name, sd in sds.items() if sd is not None})
    output(plan_study(study_design, difference, spreads, alpha=alpha, power=power, outcome=outcome or "", notes=notes))


ADDRESS = click.option(
    "--address",
    metavar="URL",
    help="Public address of the study, for the links.  [default: an address on this machine]",
)
STORE = click.option(
    "--store",
    required=True,
    metavar="STORE",
    help="Database for the answers: an SQLite file, or the address of a PostgreSQL database (postgresql://...).",
)


def hash_of(design: str) -> str:
    """Return the hash of a design file, which identifies it in a store."""
    return sha256(Path(design).read_bytes()).hexdigest()


@study.command("links", short_help="Add participants, and print their links.")
@click.argument("design")
@STORE
@click.option(
    "--participants",
    type=click.IntRange(1),
    metavar="N",
    help="Number of participants per group.  [default: number in DESIGN]",
)
@ADDRESS
def links_command(design: str, store: str, participants: int | None, address: str | None) -> None:
    """Add the participants of DESIGN to STORE, and print the name, group, and link of each.

    The command creates STORE if it does not exist. Existing participants keep their links. The last link is for the
    observer, who writes notes about participants.
    """
    from judged.studies.assignment import assignments
    from judged.studies.design import read_design
    from judged.studies.storage import OBSERVER, StudyStore

    study = read_design(design)
    study_store = StudyStore.open(store, hash_of(design), new=True)
    while True:
        enrolled = study_store.participants()
        people = {name: participant.group for name, participant in enrolled.items()}
        counts = Counter(people.values())
        for group in study.groups:
            for _ in range((participants or group.participants) - counts[group.name]):
                people[f"p{len(people) + 1}"] = group.name
        if study_store.enroll(assignments(study, people).to_pylist(), enrolled):  # False: another process added some
            break
    base = (address or "http://127.0.0.1:8642").rstrip("/")
    for name, group in people.items():
        click.echo(f"{name}\t{group}\t{base}/s/{study_store.token(name)}")
    click.echo(f"{OBSERVER}\t\t{base}/observe/{study_store.token(OBSERVER)}")
    study_store.close()


@study.command("run", short_help="Serve a study to its participants.")
@click.argument("design")
@STORE
@ADDRESS
@shared("host", "port")
def run_command(design: str, store: str, address: str | None, host: str, port: int | None) -> None:
    """Serve the study of DESIGN to participants with a link of 'judged study links', and record their actions.

    Stop the server with Ctrl-C. After a restart, participants continue where they stopped.
    """
    need_web()
    from urllib.parse import urlsplit

    import uvicorn

    from judged.interface.pages.serving import open_listener, uvicorn_config
    from judged.studies.design import read_design
    from judged.studies.pages import Study, make_study_app
    from judged.studies.records import StudyLists
    from judged.studies.storage import StudyStore

    study = read_design(design)
    study_store = StudyStore.open(store, hash_of(design))
    lists = StudyLists.of(study)
    listener = replace(open_listener(host, port), token=None)  # the tokens of participants replace it
    hosts = listener.rules.hosts or frozenset[str]()
    public_host = urlsplit(address or "").hostname
    rules = replace(listener.rules, hosts=hosts | {public_host} if public_host else hosts)
    try:
        click.echo(f"{study.title}: {counted(len(study_store.participants()), 'participant')}")
        click.echo(f"Running at {listener.address}\nPress Ctrl-C to stop")
        app = make_study_app(Study(study, study_store, lists), rules)
        uvicorn.Server(uvicorn_config(app, rules)).run(sockets=[listener.socket])
    except KeyboardInterrupt:
        click.echo(err=True)  # after the ^C of the terminal
    finally:
        listener.socket.close()
        study_store.close()


@study.command("export", short_help="Export the records of a study as tables and as an interaction log.")
@click.argument("store")
@click.option("-o", "--out", "folder", required=True, metavar="FOLDER", help="Output folder.")
@click.option("--personal", is_flag=True, help="Include answers that identify participants.")
def export_command(store: str, folder: str, personal: bool) -> None:
    """Export the tables of STORE to FOLDER as JSON Lines, and a log (log.ndjson) for 'judged online'.

    You can export while the study runs.
    """
    from judged.studies.records import write_log
    from judged.studies.storage import StudyStore

    study_store = StudyStore.open(store)
    records = study_store.records(personal=personal)
    study_store.close()
    records.write(folder)
    write_log(records, Path(folder) / "log.ndjson")
    ended, started = (records["trials"].column(name).drop_null() for name in ("ended", "started"))
    people = counted(records["participants"].num_rows, "participant")
    click.echo(f"{folder}: {people}, {counted(len(started), 'task')} started, {len(ended)} finished")


@study.command(
    "report", short_help="Report differences between systems, and the limits of conclusions from these differences."
)
@click.argument("records", type=click.Path(path_type=Path))
@click.option(
    "--design", type=click.Path(path_type=Path), metavar="FILE", help="Design of the study, with its questionnaires."
)
@click.option(
    "--outcome",
    metavar="NAME",
    help="Primary outcome. All other outcomes are exploratory.  [default: the first outcome]",
)
@click.option("--qrels", metavar="FILE", help="Judgments of documents.  [default: qrels of the design]")
@shared("measure", help="Offline measure to correlate with the outcomes.")
@shared("confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True))
@shared("seed", type=click.IntRange(0))
@answer_options()
def report_command(records: Path, output: OutputOptions, *, design: Path | None, **options: Any) -> None:
    """Report the results of a user study. RECORDS is the folder that 'judged study export' writes."""
    from judged.studies.design import read_design
    from judged.studies.records import StudyRecords
    from judged.studies.study_report import report

    study_design = read_design(design) if design is not None else None
    answer = report(StudyRecords.read(records), study_design, **options)
    output(answer, unfold=[block.name for block in answer.blocks()] if output.verbose else ())
