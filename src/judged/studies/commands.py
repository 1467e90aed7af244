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
    """Plan and run a user study, in which several people do the same tasks with each of several systems.

    DESIGN is a TOML file: systems, tasks, questionnaires, groups of people, their order (docs/user-studies.md).
    """


@study.command("init", short_help="Write a first DESIGN, to start from.")
@click.argument("design", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite an existing DESIGN.")
def init_command(design: Path, *, force: bool) -> None:
    """Write a first DESIGN with comments: a study of two rankers of the sample, which can be run as it stands."""
    from judged.data.files import exists
    from judged.studies import first_design

    if exists(design) and not force:
        raise InputError("this file exists already", fix="use another name, or --force to overwrite", path=str(design))
    write_result(first_design(design.name).rstrip("\n"), design)
    click.echo(f"wrote {design}; next: judged study check {design}")


@study.command("check", short_help="Check that DESIGN can be run, and what it balances.")
@click.argument("design")
@answer_options()
def check_command(design: str, output: OutputOptions) -> None:
    """Check that the files of DESIGN are there, what its order balances, and how long it takes a participant.

    Exit code 0: it can be run; 1: something is missing; 2: DESIGN makes no sense.
    """
    from judged.studies import check_design, read_design

    output.keep(design)
    check = check_design(read_design(design))
    output(check)
    if not check.ready:
        raise SystemExit(1)


@study.command("plan", short_help="How many people, and topics, it takes to find a difference.")
@click.argument("design")
@click.option(
    "--difference", type=float, required=True, metavar="D", help="The least difference of two systems that matters."
)
@click.option("--pilot", metavar="FOLDER", help="Records of a pilot, from which the spreads are estimated.")
@click.option(
    "--outcome", metavar="NAME", help="Of the pilot: minutes, saved, or a questionnaire asked after each task."
)
@click.option("--trials", type=float, metavar="S", help="Of single trials.  [default: 1]")
@click.option("--people-by-system", type=float, metavar="S", help="Of what a system is to people.  [default: 0.3]")
@click.option("--topics-by-system", type=float, metavar="S", help="Of what it is to topics.  [default: 0.3]")
@click.option("--people", type=float, metavar="S", help="Of people, where each has one variant.  [default: 0]")
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
    """Say how many participants, and topics, it takes to find a true difference between two systems of DESIGN.

    Both people and topics are samples: where topics are few, more people are not enough. Options with S are standard
    deviations, in the unit of the difference; those that are given replace those of the pilot.
    """
    from judged.studies import Spreads, StudyRecords, pilot_spreads, plan_study, read_design

    output.keep(design)
    if (pilot is None) != (outcome is None):
        raise InputError("--pilot and --outcome need each other", fix="use --pilot FOLDER --outcome NAME, or neither")
    study_design, spreads, notes = read_design(design), Spreads(0.0, 0.3, 0.3, 1.0), ()
    if pilot and outcome:
        spreads, notes = pilot_spreads(StudyRecords.read(pilot), study_design, outcome)
    spreads = replace(spreads, **{name: sd for name, sd in sds.items() if sd is not None})
    output(plan_study(study_design, difference, spreads, alpha=alpha, power=power, outcome=outcome or "", notes=notes))


ADDRESS = click.option(
    "--address", metavar="URL", help="Where participants reach it, if not at the machine that it runs on."
)
STORE = click.option(
    "--store", required=True, metavar="STORE", help="Where answers are kept: a file, or postgresql://..."
)


def hash_of(design: str) -> str:
    """Return the hash of a design file, which identifies it in a store."""
    return sha256(Path(design).read_bytes()).hexdigest()


@study.command("links", short_help="Add participants, and print the link of each.")
@click.argument("design")
@STORE
@click.option(
    "--participants", type=click.IntRange(1), metavar="N", help="So many of each group.  [default: as DESIGN says]"
)
@ADDRESS
def links_command(design: str, store: str, participants: int | None, address: str | None) -> None:
    """Make STORE for the study of DESIGN where there is none, with its participants; print participant, group and link.

    Links are the same each time; more participants are added to those who are there. The last one is an observer's, for
    notes on what participants say and do.
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


@study.command("run", short_help="Show a study to those who take part.")
@click.argument("design")
@STORE
@ADDRESS
@shared("host", "port")
def run_command(design: str, store: str, address: str | None, host: str, port: int | None) -> None:
    """Serve the pages of the study of DESIGN to whoever has a link of 'judged study links', and keep what they do.

    Ctrl-C stops it; when it runs again, everybody goes on where they were.
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
        click.echo(f"running at {listener.address}\nCtrl-C stops it")
        app = make_study_app(Study(study, study_store, lists), rules)
        uvicorn.Server(uvicorn_config(app, rules)).run(sockets=[listener.socket])
    except KeyboardInterrupt:
        click.echo(err=True)  # after the ^C of the terminal
    finally:
        listener.socket.close()
        study_store.close()


@study.command("export", short_help="Write what was recorded, as tables and as a log.")
@click.argument("store")
@click.option("-o", "--out", "folder", required=True, metavar="FOLDER", help="Where to.")
@click.option("--personal", is_flag=True, help="With what says who somebody is, if the design asks for it.")
def export_command(store: str, folder: str, personal: bool) -> None:
    """Write the tables of STORE into FOLDER as JSON Lines, and log.ndjson, which 'judged online' reads.

    It can be done while the study runs.
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
    click.echo(f"{folder}: {people}, {counted(len(started), 'task')} begun, {len(ended)} ended")


@study.command("report", short_help="What a study shows, for whom, and what may not be concluded.")
@click.argument("records", type=click.Path(path_type=Path))
@click.option(
    "--design", type=click.Path(path_type=Path), metavar="FILE", help="How it was made, and its questionnaires."
)
@click.option("--outcome", metavar="NAME", help="What decides; all else explores.  [default: the first]")
@click.option("--qrels", metavar="FILE", help="Judgments of documents.  [default: those of the design]")
@shared("measure", help="Held against what people said.")
@shared("confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True))
@shared("seed", type=click.IntRange(0))
@answer_options()
def report_command(records: Path, output: OutputOptions, *, design: Path | None, **options: Any) -> None:
    """Say what the study whose RECORDS are in this folder shows of its systems."""
    from judged.studies.design import read_design
    from judged.studies.records import StudyRecords
    from judged.studies.study_report import report

    study_design = read_design(design) if design is not None else None
    output(report(StudyRecords.read(records), study_design, **options))
