"""`judged study links`: who takes part, and the link of each."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from pathlib import Path

import click

ADDRESS = click.option(
    "--address", metavar="URL", help="Where participants reach it, if not at the machine that it runs on."
)
STORE = click.option(
    "--store", required=True, metavar="STORE", help="Where answers are kept: a file, or postgresql://..."
)


def hash_of(design: str) -> str:
    """Give the hash by which a store knows its design."""
    return sha256(Path(design).read_bytes()).hexdigest()


@click.command("links", short_help="Add participants, and print the link of each.")
@click.argument("design")
@STORE
@click.option(
    "--participants", type=click.IntRange(1), metavar="N", help="So many of each group.  [default: as DESIGN says]"
)
@ADDRESS
def command(design: str, store: str, participants: int | None, address: str | None) -> None:
    """Make STORE for the study of DESIGN where there is none, with its participants; print participant, group and link.

    Links are the same each time; more participants are added to those who are there. The last one is an observer's, for
    notes on what participants say and do.
    """
    from judged.studies.assignment import assignments
    from judged.studies.design import read_design
    from judged.studies.storage import OBSERVER, StudyStore

    study = read_design(design)
    opened = StudyStore.open(store, hash_of(design), new=True)
    while True:
        known = opened.participants()
        people = {who: participant.group for who, participant in known.items()}
        counts = Counter(people.values())
        for group in study.groups:
            for _ in range((participants or group.participants) - counts[group.name]):
                people[f"p{len(people) + 1}"] = group.name
        if opened.enrol(assignments(study, people).to_pylist(), known):  # else another process has added some
            break
    base = (address or "http://127.0.0.1:8642").rstrip("/")
    for who, group in people.items():
        click.echo(f"{who}\t{group}\t{base}/s/{opened.token(who)}")
    click.echo(f"{OBSERVER}\t\t{base}/observe/{opened.token(OBSERVER)}")
    opened.close()
