"""`judged clicks fit`: one click model of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import logs
from judged.cli.clicks_models import counting_options
from judged.cli.formats import answer_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("fit", short_help="Fit a click model to a LOG: attractiveness, examination, satisfaction.")
@click.argument("paths", nargs=-1, required=True, metavar="LOG...")
@click.option("-m", "--model", default="UBM", show_default=True, metavar="NAME", help="PBM, UBM, DBN, ...")
@click.option(
    "--shrink",
    type=click.Choice(["empirical", "none"]),
    default="empirical",
    show_default=True,
    help="Draw rare pairs towards the others, or let each stand for itself.",
)
@click.option("--iterations", type=int, default=1000, show_default=True, help="At most so many steps.")
@click.option(
    "--resamples", type=int, default=0, show_default=True, help="Standard errors by a bootstrap; 0: by information."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@counting_options
@logs.interval
@logs.log_options
@answer_options()
def command(paths: tuple[str, ...], give: Give, **options: Any) -> None:
    """Fit a click model to LOG: what attracts clicks at each query, and how far users look.

    The table 'attractiveness' has a row for each query and document: --format csv writes it (docs/click-models.md).
    """
    from judged.online.clicks import fit_model
    from judged.online.engine import within_memory

    give.keep(*paths, options["mapping"])
    with within_memory():
        log = logs.open_log(paths, **{name: options.pop(name) for name in logs.READING})
        with logs.progress_line("counting") as tell:
            found = fit_model(log, progress=tell, **options)
    give(found)
