"""Options that mean the same in several commands: ``@shared("topics", "ties")`` gives a command those it names."""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from judged.components import load
from judged.scoring.default_measures import DEFAULT_MEASURE, TESTED_MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Command = TypeVar("Command", bound=Callable[..., Any])


DIALECTS = ("trec_eval-10", "trec_eval-9", "gdeval", "ndeval", "msmarco", "beir", "ranx")
POLICIES = ("dialect", "topics", "depth", "ties", "exclude_self", "documents", "rel")
FORMATS = ("qrels_format", "run_format")
CHOICE = ("queries", "attributes", "where")
PAIRED_TESTS = (
    "randomisation",
    "t",
    "wilcoxon",
    "sign",
    "bootstrap",
    "bca",
    "studentised",
    "bounded",
    "ratio",
    "bayes",
)
DEFAULT_TEST = "randomisation; for more than 2000 topics t"


class Choice(click.Choice[str]):
    """A choice of names that ignores case and hyphens.

    ``module:name`` refers to a `Literal` or a mapping with the names. It is imported when the names are needed.
    """

    def __init__(self, names: str | Sequence[str], *more: str) -> None:
        self.case_sensitive = True
        self._names, self._more = names, more

    @cached_property
    def choices(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Names that the option accepts."""
        names = load(self._names) if isinstance(self._names, str) else self._names
        return (*(get_args(names) or names), *self._more)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the accepted name that the value spells."""
        from judged.results.spelling import spelled

        try:
            return super().convert(spelled(value, self.choices) if isinstance(value, str) else value, param, ctx)
        except click.BadParameter as error:
            if ctx and param and param.name == "topics" and any(other.name == "where" for other in ctx.command.params):
                from judged.data.expression import among

                fix = f'to use some topics, write --where "{among(value)}"'
                raise Misspelt(error.message, fix, ctx, param) from None
            raise


class Misspelt(click.BadParameter):
    """An invalid value of an option, with a fix."""

    def __init__(
        self, message: str, fix: str = "", ctx: click.Context | None = None, param: click.Parameter | None = None
    ) -> None:
        super().__init__(message, ctx, param)
        self.fix = fix


_TIE_POLICY = "judged.scoring.judging.ranking:TiePolicy"
_TIES = (
    "Order of documents with equal scores: by descending or ascending document id"
    " (docid, docid-rising), or as in the run (stable). rank: order all documents by the"
    " rank column. expected: take the mean over all orders{}.  [default: docid, or the"
    " dialect's]"
)


def _option(*flags: str, **attributes: Any) -> Callable[..., Any]:
    return partial(click.option, *flags, **attributes)


_SHARED: dict[str, Callable[..., Any]] = {
    "qrels": partial(click.argument, "qrels"),
    "runs": partial(click.argument, "runs", nargs=-1, required=True, metavar="RUN..."),
    "some_runs": partial(click.argument, "runs", nargs=-1, metavar="[RUN]..."),
    "measure": _option("-m", "--measure", default=DEFAULT_MEASURE, show_default=True, metavar="NAME"),
    "measures": _option(
        "-m",
        "--measure",
        multiple=True,
        metavar="NAME",
        help=f"A measure. Repeat for more.  [default: {', '.join(TESTED_MEASURES)}]",
    ),
    "dialect": _option(
        "--dialect", type=Choice(DIALECTS), help="Follow the rules of this tool, and read measure names as it does."
    ),
    "topics": _option(
        "--topics",
        type=Choice("judged.scoring.judging.ranking:TopicPolicy"),
        help="Which topics count: all in the qrels (a missing one scores 0), those in the run, or those in both."
        "  [default: qrels, or the dialect's]",
    ),
    "depth": _option(
        "--depth", type=click.IntRange(1), metavar="N", help="Use only the first N documents of each topic."
    ),
    "order": _option(
        "--ties", type=Choice(_TIE_POLICY), default="docid", show_default=True, help=_TIES.partition(" expected:")[0]
    ),
    "ties": _option("--ties", type=Choice(_TIE_POLICY, "expected"), help=_TIES.format("")),
    "ties_or_bounds": _option(
        "--ties",
        type=Choice(_TIE_POLICY, "expected", "bounds"),
        help=_TIES.format("; bounds: show how far the order could move each number"),
    ),
    "exclude_self": _option(
        "--exclude-self",
        is_flag=True,
        default=None,
        help="Leave out returned documents whose id is that of their topic.  [default: as the dialect does]",
    ),
    "documents": _option(
        "--documents",
        metavar="FILE",
        help="Table of facts about documents (lengths, groups, costs), for measures that need it.",
    ),
    "rel": _option(
        "--rel",
        type=float,
        metavar="GRADE",
        help="The lowest relevant grade, for every measure whose name does not set it, as -m 'AP(rel=2)' does.",
    ),
    "ci": _option(
        "--ci",
        type=Choice("judged.stats.interval:IntervalName"),
        default="adjusted",
        show_default=True,
        help="How intervals over topics are computed: Student's t, adjusted for skewness and the"
        " bounds of the measure; textbook Student's t; or the bootstrap.",
    ),
    "confidence": _option(
        "--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals."
    ),
    "level": _option(
        "--level",
        type=float,
        default=0.95,
        show_default=True,
        help="Confidence level of the intervals. (For the lowest relevant grade, see --rel.)",
    ),
    "draws": _option("--resamples", type=int, default=2000, show_default=True, help="Number of bootstrap resamples."),
    "seed": _option("--seed", type=int, default=0, show_default=True, help="Seed for everything random."),
    "correction": _option(
        "--correction",
        type=Choice("judged.stats.correction:CORRECTIONS"),
        default="holm",
        show_default=True,
        help="How p-values are corrected for multiple comparisons.",
    ),
    "alpha": _option(
        "--alpha",
        type=float,
        default=0.05,
        show_default=True,
        help="Significance level of the tests; intervals of differences match it.",
    ),
    "power": _option(
        "--power", type=float, default=0.8, show_default=True, help="Probability of detecting a true difference."
    ),
    "fdr": _option(
        "--fdr",
        type=float,
        default=0.1,
        show_default=True,
        help="False discovery rate for the topics reported as having lost.",
    ),
    "resamples": _option(
        "--resamples",
        type=int,
        default=None,
        help="Number of resamples for the test.  [default: 100000; for more than 300 topics 10000]",
    ),
    "margin": _option(
        "--margin",
        type=float,
        metavar="D",
        help="Also test whether systems are equivalent, that is, differ by less than D.",
    ),
    "host": _option("--host", metavar="NAME", default="127.0.0.1", show_default=True, help="The address to listen on."),
    "port": _option(
        "--port",
        type=click.IntRange(0, 65535),
        metavar="N",
        help="The port; 0 for any free one.  [default: 8642, or the next free one]",
    ),
    "texts": _option(
        "--texts", metavar="FILE", help="Titles and texts of documents: JSONL, CSV, Parquet, TREC, or a folder."
    ),
    "queries": _option("--queries", metavar="FILE", help="Texts of the queries, and any attributes beside them."),
    "by": _option(
        "--by",
        multiple=True,
        metavar="NAME[,NAME]",
        help="Attributes to slice by, one slice for each value: from the files, or derived"
        " (relevant, words, length, kind, first_relevant, ...).",
    ),
    "pool_depth": _option(
        "--pool-depth",
        type=click.IntRange(1),
        default=100,
        show_default=True,
        metavar="N",
        help="How many documents of each run were judged for each topic.",
    ),
    "group": _option(
        "--group",
        multiple=True,
        metavar="RUN=GROUP",
        help="Leave out the runs of one group together, since they find the same documents. Repeat for more.",
    ),
    "cutoff": _option("--cutoff", type=click.IntRange(1), default=10, show_default=True),
    "limit": _option("--limit", type=click.IntRange(1), show_default=True),
    "per_topic": _option("--per-topic", is_flag=True, help="Show every topic."),
    "topic": _option("-t", "--topic", metavar="ID"),
    "scale": _option(
        "--scale",
        type=Choice("judged.stats.agreement:Scale"),
        default="ordinal",
        show_default=True,
        help="The scale on which Krippendorff's alpha treats grades.",
    ),
    "attributes": _option(
        "--attributes", metavar="FILE", help="Table of facts about topics: CSV, TSV, JSON, JSONL or Parquet."
    ),
    "where": _option(
        "--where", metavar="EXPR", help="Use only the topics that match, such as \"kind == 'law' and words < 5\"."
    ),
    "qrels_format": _option("--qrels-format", metavar="FORMAT", help="Format of QRELS.  [default: detected]"),
    "run_format": _option("--run-format", metavar="FORMAT", help="Format of the runs.  [default: detected]"),
}


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def shared(*names: str, **changes: Any) -> Callable[[Command], Command]:
    """Return a decorator that adds shared options to a command; `changes` replaces attributes, such as ``help``."""
    return with_options(*(_SHARED[name](**changes) for name in names))


_MOST = 2**31 - 1
_MOST_OF = {"seed": 2**63 - 1, "resamples": 1_000_000}


def checked(command: click.Command) -> click.Command:
    """Add tolerance of spelling to the choices of a command and its subcommands, and limits to its numbers."""
    for param in command.params:
        if isinstance(param.type, click.Choice) and not isinstance(param.type, Choice):
            param.type = Choice(param.type.choices)
        if isinstance(param.type, click.types.IntParamType | click.types.FloatParamType):
            param.callback = _bounded(param.callback)
    for below in getattr(command, "commands", {}).values():
        checked(below)
    return command


def _bounded(callback: Callable[..., Any] | None) -> Callable[..., Any]:
    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        most = _MOST_OF.get(param.name or "", _MOST)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise click.BadParameter(f"{number} cannot be used here: give a finite number.", ctx, param)
            if isinstance(number, int) and abs(number) > most:
                raise click.BadParameter(f"{number} is out of range: the limit is {most:,}.", ctx, param)
        return value if callback is None else callback(ctx, param, value)

    return check


class Group(click.Group):
    """A group whose commands may stand in other modules.

    Parameters
    ----------
    *args, **more
        As of `click.Group`.
    places
        Where other commands stand, as ``module:name``, by their names. The help lists them behind those of the group's
        own module, in this order.
    """

    def __init__(self, *args: Any, places: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.places = dict(places or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        del ctx
        return [*(name for name in self.commands if name not in self.places), *self.places]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported where that is needed."""
        del ctx
        if cmd_name in self.places and cmd_name not in self.commands:
            self.add_command(checked(load(self.places[cmd_name])), cmd_name)
        return self.commands.get(cmd_name)
