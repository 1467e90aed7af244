"""The command `judged`: its subcommands, and its start and end as a process."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

import click

import judged
from judged.cli import output
from judged.cli.exits import CODES, end_on_signals, ended, guard, ignore_signals
from judged.cli.groups import Group
from judged.errors import JudgedWarning

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Hidden:
    """Hides from this process what pyarrow imports by itself, where it is installed, and nothing here uses.

    pandas takes longer than most evaluations, and S3 8 MB.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        del path, target
        if name in {"pandas", "pyarrow._s3fs"} and "pyspark" not in sys.modules:  # which does not work without
            raise ModuleNotFoundError(name=name)


_SECTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "Scores": {"scoring": ("evaluate", "explain", "curve", "measures", "advise")},
    "Comparison": {"comparison": ("compare", "power", "agree", "fuse"), "experiment": ("experiment",)},
    "Diagnosis": {
        "slices": ("slices",),
        "diagnosis": ("matrix", "stages", "disagree", "needs", "diff", "review", "tradeoff"),
        "traces": ("traces",),
    },
    "Release": {"gate": ("gate",), "reports": ("change", "report")},
    "Answers": {"rag": ("rag",)},
    "Online": {"online": ("online",), "logs": ("logs",), "clicks": ("clicks",), "online_comparisons": ("watch",)},
    "People": {"study": ("study",)},
    "Judgments": {"data": ("pool", "collection"), "labels": ("labels",)},
    "Workbench": {"serve": ("serve",)},
    "Files and tools": {"data": ("check", "demo"), "scoring": ("leave-one-out",), "trec_eval": ("trec_eval",)},
}
"""The commands of each section of the help, by their modules."""


class _Commands(Group):
    """The subcommands, in sections."""

    def __init__(self, *args: Any, **more: Any) -> None:
        modules = {
            name: f"judged.cli.{module}"
            for section in _SECTIONS.values()
            for module, names in section.items()
            for name in names
        }
        super().__init__(*args, commands=modules, **more)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command that is asked for, or say which one may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # only wrong names need it

            if close := get_close_matches(args[0], self.modules, 1):
                error.fix = f"write {ctx.command_path} {close[0]}"  # type: ignore[attr-defined]
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by what they are for."""
        width = max(map(len, self.modules))
        for title, section in _SECTIONS.items():
            rows: list[tuple[str, str]] = []
            for name in chain.from_iterable(section.values()):
                command = self.get_command(ctx, name)
                limit = formatter.width - 6 - width
                rows.append((name.ljust(width), "" if command is None else command.get_short_help_str(limit)))
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=CODES
)
@click.version_option(judged.__version__, message="%(version)s", help="Print the version.")
def app() -> None:
    """Evaluate search, recommendation and RAG retrieval: correct numbers, with intervals and warnings."""
    other = warnings.showwarning

    def show(message: Any, category: Any, *place: Any) -> None:
        if issubclass(category, JudgedWarning):
            output.notes([str(message)])
        else:
            other(message, category, *place)

    warnings.showwarning = show


def main() -> None:
    """Run the command line; whatever goes wrong becomes one line and an exit code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # idle threads of NumPy's linear algebra would spin
    hidden: Any = _Hidden
    sys.meta_path.insert(0, hidden)
    try:
        code = app(prog_name="judged", standalone_mode=False)
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            sys.stdout.flush()
    except Exception as error:  # noqa: BLE001  everything ends in words
        code = ended(error)
    except KeyboardInterrupt as stop:
        code = ended(stop)
    sys.exit(code)


def trec_eval_script() -> NoReturn:
    """Run ``judged trec_eval`` under a name of its own, for scripts that take a path to trec_eval."""
    sys.argv.insert(1, "trec_eval")
    script()


def script() -> NoReturn:
    """Run the command line as a process of its own, and end it at once."""
    # Python would otherwise free every object one by one, which takes a tenth of a short command's time; looking for
    # garbage while modules are imported would take some more.
    gc.set_threshold(100_000)
    guard()
    end_on_signals()
    code: Any = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    except KeyboardInterrupt as second:
        code = ended(second)
    with suppress(KeyboardInterrupt):
        ignore_signals()
    if code not in (0, 1):
        gc.collect()  # frames of an interrupted statement keep a database open, and so its files beside a store
    atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    os._exit(code)
