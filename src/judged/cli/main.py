"""The command `judged`, its subcommands, and the start and end of its process."""

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
from judged.cli.exits import CODES, end_on_signals, exit_code, ignore_signals, wrap_streams
from judged.components import built_in, third_party
from judged.errors import JudgedWarning
from judged.interface.options import LazyGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.components import Command, Component


class _ImportBlocker:
    """Import hook that blocks modules which pyarrow imports and judged does not use.

    Importing pandas takes longer than most evaluations, and S3 takes 8 MB.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        del path, target
        if name in {"pandas", "pyarrow._s3fs"} and "pyspark" not in sys.modules:  # pyspark requires them
            raise ModuleNotFoundError(name=name)


_SECTIONS = (
    "Scores", "Comparison", "Diagnosis", "Release", "Answers", "Online", "People", "Judgments", "Workbench",
    "Files and tools",
)  # fmt: skip
"""Order of the sections in the help; sections of other packages follow."""


class _Commands(LazyGroup):
    """Commands of all components, in sections. Other packages are loaded only for the help or an unknown name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
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
        """Return a command of judged, or else of another package."""
        if cmd_name not in self.places:
            self._add(third_party())
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command, or raise an error that suggests a similar one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from shlex import quote

            from judged.scoring.names import find_names, name_index  # only unknown names need it

            best = next((name for name in find_names(args[0], name_index()) if name.kind != "page"), None)
            if best is not None:
                command = best.name if best.kind == "command" else f"judged measures {quote(args[0])}"
                error.fix = f"write {command}"  # type: ignore[attr-defined]
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section."""
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
    """Evaluate search, recommendation, and RAG retrieval, with confidence intervals and warnings."""
    from judged.interface.arguments import print_warnings  # not needed for the help

    original = warnings.showwarning

    def show_warning(message: Any, category: Any, *place: Any) -> None:
        if issubclass(category, JudgedWarning):
            print_warnings([str(message)])
        else:
            original(message, category, *place)

    warnings.showwarning = show_warning


def main() -> None:
    """Run the command line. Any error ends it with a message of one line and an exit code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # idle OpenBLAS threads would use CPU time
    import_blocker: Any = _ImportBlocker
    sys.meta_path.insert(0, import_blocker)
    try:
        code = app(prog_name="judged", standalone_mode=False)
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            sys.stdout.flush()
    except Exception as error:  # noqa: BLE001  any error becomes a message
        code = exit_code(error)
    except KeyboardInterrupt as interrupt:
        code = exit_code(interrupt)
    sys.exit(code)


def trec_eval_script() -> NoReturn:
    """Run ``judged trec_eval`` as a separate script, for tools that require a path to trec_eval."""
    sys.argv.insert(1, "trec_eval")
    script()


def script() -> NoReturn:
    """Run the command line as a process, and end it without cleanup by the interpreter."""
    # Freeing all objects would take a tenth of the time of a short command, and garbage collection during imports more.
    gc.set_threshold(100_000)
    wrap_streams()
    end_on_signals()
    code: Any = 0
    try:
        main()
    except SystemExit as system_exit:
        code = system_exit.code or 0
    except KeyboardInterrupt as interrupt:
        code = exit_code(interrupt)
    with suppress(KeyboardInterrupt):
        ignore_signals()
    if code not in (0, 1):
        gc.collect()  # frames of an interrupted statement keep a database open, with its temporary files
    atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    os._exit(code)
