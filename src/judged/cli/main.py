"""The command `judged`: its subcommands, and its start and end as a process."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

import judged
from judged.cli.exits import CODES, end_on_signals, ended, guard, ignore_signals
from judged.components import built_in, third_party
from judged.errors import JudgedWarning
from judged.interface.options import Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.components import Command, Component


class _Hidden:
    """Hides from this process what pyarrow imports by itself, where it is installed, and nothing here uses.

    pandas takes longer than most evaluations, and S3 8 MB.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        del path, target
        if name in {"pandas", "pyarrow._s3fs"} and "pyspark" not in sys.modules:  # which does not work without
            raise ModuleNotFoundError(name=name)


_SECTIONS = (
    "Scores", "Comparison", "Diagnosis", "Release", "Answers", "Online", "People", "Judgments", "Workbench",
    "Files and tools",
)  # fmt: skip
"""The order of the sections of the help; those of other packages come behind."""


class _Commands(Group):
    """The commands of all components, in sections. Other packages are looked up when a name is unknown, or for help."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.sections: dict[str, dict[str, Command]] = {section: {} for section in _SECTIONS}
        self._add(built_in())

    def _add(self, components: Iterable[Component]) -> None:
        for component in components:
            for section, commands in component.commands.items():
                new = {name: command for name, command in commands.items() if name not in self.places}
                self.sections.setdefault(section, {}).update(new)
                self.places |= {name: command.place for name, command in new.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        self._add(third_party())
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, of another package where no component of judged has it."""
        if cmd_name not in self.places:
            self._add(third_party())
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command that is asked for, or say which one may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # only wrong names need it

            if close := get_close_matches(args[0], self.list_commands(ctx), 1):
                error.fix = f"write {ctx.command_path} {close[0]}"  # type: ignore[attr-defined]
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by what they are for."""
        width = max(map(len, self.list_commands(ctx)))
        for section, commands in self.sections.items():
            if commands:
                with formatter.section(section):
                    formatter.write_dl([(name.ljust(width), command.about) for name, command in commands.items()])


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=CODES
)
@click.version_option(judged.__version__, message="%(version)s", help="Print the version.")
def app() -> None:
    """Evaluate search, recommendation and RAG retrieval: correct numbers, with intervals and warnings."""
    from judged.interface.arguments import print_warnings  # every command imports it, and the help none

    other = warnings.showwarning

    def show(message: Any, category: Any, *place: Any) -> None:
        if issubclass(category, JudgedWarning):
            print_warnings([str(message)])
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
