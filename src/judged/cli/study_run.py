"""`judged study run`: the pages of a study, for those who take part."""

from __future__ import annotations

from dataclasses import replace

import click

from judged.cli.options import shared
from judged.cli.serve import need_web
from judged.cli.study_links import ADDRESS, STORE, hash_of
from judged.results.decimals import counted


@click.command("run", short_help="Show a study to those who take part.")
@click.argument("design")
@STORE
@ADDRESS
@shared("host", "port")
def command(design: str, store: str, address: str | None, host: str, port: int | None) -> None:
    """Serve the pages of the study of DESIGN to whoever has a link of 'judged study links', and keep what they do.

    Ctrl-C stops it; when it runs again, everybody goes on where they were.
    """
    need_web()
    from urllib.parse import urlsplit

    import uvicorn

    from judged.studies.design import read_design
    from judged.studies.lists import StudyLists
    from judged.studies.storage import StudyStore
    from judged.web.server import configured, place
    from judged.web.study.routes import Study, make_study_app

    study = read_design(design)
    opened = StudyStore.open(store, hash_of(design))
    lists = StudyLists.of(study)
    where = replace(place(host, port), token=None)  # participants have their own
    names = where.rules.hosts or frozenset[str]()
    outside = urlsplit(address or "").hostname
    rules = replace(where.rules, hosts=names | {outside} if outside else names)
    try:
        click.echo(f"{study.title}: {counted(len(opened.participants()), 'participant')}")
        click.echo(f"running at {where.address}\nCtrl-C stops it")
        uvicorn.Server(configured(make_study_app(Study(study, opened, lists), rules), rules)).run(
            sockets=[where.socket]
        )
    except KeyboardInterrupt:
        click.echo(err=True)  # after the ^C of the terminal
    finally:
        where.socket.close()
        opened.close()
