"""Options that several commands have: ``@shared("topics", "ties")`` adds these options to a command."""

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
READING = (*FORMATS, "columns", "normalize_ids")
TOPIC_OPTIONS = ("queries", "attributes", "where")
PAIRED_TESTS = (
    "randomization",
    "t",
    "wilcoxon",
    "sign",
    "bootstrap",
    "bca",
    "studentized",
    "bounded",
    "ratio",
    "bayes",
)
DEFAULT_TEST = "randomization, or t for more than 2000 topics"


class Choice(click.Choice[str]):
    """A choice of names that ignores case and hyphens.

    ``module:name`` refers to a `Literal` or a mapping with the names. It is imported when the names are needed.
    """

    def __init__(self, names: str | Sequence[str], *more: str) -> None:
        self.case_sensitive = True
        self._names, self._more = names, more

    @cached_property
    def choices(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Names to choose from."""
        names = load(self._names) if isinstance(self._names, str) else self._names
        return (*(get_args(names) or names), *self._more)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the canonical spelling of a value."""
        from judged.results.spelling import canonical_name

        try:
            return super().convert(canonical_name(value, self.choices) if isinstance(value, str) else value, param, ctx)
        except click.BadParameter as error:
            if ctx and param and param.name == "topics" and any(other.name == "where" for other in ctx.command.params):
                from judged.data.expression import select_query_ids

                fix = f'to select topics, use --where "{select_query_ids(value)}"'
                raise InvalidChoiceError(error.message, fix, ctx, param) from None
            raise


class InvalidChoiceError(click.BadParameter):
    """An invalid value of an option, with a fix."""

    def __init__(
        self, message: str, fix: str = "", ctx: click.Context | None = None, param: click.Parameter | None = None
    ) -> None:
        super().__init__(message, ctx, param)
        self.fix = fix


_TIE_POLICY = "judged.scoring.judging.ranking:TiePolicy"
_TIES = (
    "Order of documents with equal scores. docid: descending document ID; docid-rising: ascending document ID;"
    " stable: order of the documents in the run; rank: all documents are sorted by the rank column, not by score;"
    " expected: each score is"
    " the mean over all orders of tied documents{}.  [default: docid; with --dialect, the rule of the tool]"
)


def _read_with(ctx: click.Context, param: click.Parameter, value: str | bool | None) -> None:
    """Read the tables of this command with names of columns, or with normalized ids."""
    from judged.data.column_names import parse_columns, reading_options, use_columns

    if value:
        options = reading_options()
        columns = parse_columns(value) if isinstance(value, str) else options.columns
        ctx.with_resource(use_columns(columns, normalize_ids=options.normalize_ids or param.name == "normalize_ids"))


def _option(*flags: str, **attributes: Any) -> Callable[..., Any]:
    return partial(click.option, *flags, **attributes)


_OPTIONS: dict[str, Callable[..., Any]] = {
    "qrels": partial(click.argument, "qrels"),
    "runs": partial(click.argument, "runs", nargs=-1, required=True, metavar="RUN..."),
    "some_runs": partial(click.argument, "runs", nargs=-1, metavar="[RUN]..."),
    "measure": _option("-m", "--measure", default=DEFAULT_MEASURE, show_default=True, metavar="NAME"),
    "measures": _option(
        "-m",
        "--measure",
        multiple=True,
        metavar="NAME",
        help=f"Measure. Can be repeated.  [default: {', '.join(TESTED_MEASURES)}]",
    ),
    "dialect": _option(
        "--dialect", type=Choice(DIALECTS), help="Evaluation tool whose rules and measure names are used."
    ),
    "topics": _option(
        "--topics",
        type=Choice("judged.scoring.judging.ranking:TopicPolicy"),
        help="Topics that are averaged. qrels: all topics in the qrels (a topic missing from the run scores 0); run:"
        " topics in the run; both: topics in the qrels and the run.  [default: qrels; with --dialect, the rule of"
        " the tool]",
    ),
    "depth": _option("--depth", type=click.IntRange(1), metavar="N", help="Use only the top N documents per topic."),
    "order": _option(
        "--ties",
        type=Choice(_TIE_POLICY),
        default="docid",
        show_default=True,
        help=_TIES.partition("; expected")[0] + ".",
    ),
    "ties": _option("--ties", type=Choice(_TIE_POLICY, "expected"), help=_TIES.format("")),
    "ties_or_bounds": _option(
        "--ties",
        type=Choice(_TIE_POLICY, "expected", "bounds"),
        help=_TIES.format("; bounds: the lowest and highest score over all orders of tied documents are shown"),
    ),
    "exclude_self": _option(
        "--exclude-self",
        is_flag=True,
        default=None,
        help="Remove returned documents whose ID equals the topic ID.  [default: documents are kept; with --dialect,"
        " the rule of the tool]",
    ),
    "documents": _option(
        "--documents",
        metavar="FILE",
        help="Table of document attributes (lengths, groups, costs), for measures that require it.",
    ),
    "rel": _option(
        "--rel",
        type=float,
        metavar="GRADE",
        help="Lowest grade that counts as relevant, for measures whose name does not set this grade. -m 'AP(rel=2)'"
        " sets the grade for one measure.",
    ),
    "ci": _option(
        "--ci",
        type=Choice("judged.stats.interval:IntervalName"),
        default="adjusted",
        show_default=True,
        help="Method of confidence intervals of means over topics. adjusted: Student's t, adjusted for skewness and"
        " the bounds of the measure; t: Student's t; bootstrap: the bootstrap; none: no intervals.",
    ),
    "confidence": _option(
        "--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals."
    ),
    "level": _option(
        "--level",
        type=float,
        default=0.95,
        show_default=True,
        help="Confidence level of the intervals. To set the lowest relevant grade, use --rel.",
    ),
    "draws": _option("--resamples", type=int, default=2000, show_default=True, help="Number of bootstrap resamples."),
    "seed": _option("--seed", type=int, default=0, show_default=True, help="Random seed."),
    "correction": _option(
        "--correction",
        type=Choice("judged.stats.correction:CORRECTIONS"),
        default="holm",
        show_default=True,
        help="Correction of p-values for multiple comparisons.",
    ),
    "alpha": _option(
        "--alpha",
        type=float,
        default=0.05,
        show_default=True,
        help="Significance level of tests. Confidence intervals of differences have the level 1 - alpha.",
    ),
    "power": _option(
        "--power",
        type=float,
        default=0.8,
        show_default=True,
        help="Power: the probability of detecting a true difference.",
    ),
    "fdr": _option(
        "--fdr",
        type=float,
        default=0.1,
        show_default=True,
        help="False discovery rate among the topics that are reported as worse than in the baseline.",
    ),
    "resamples": _option(
        "--resamples",
        type=int,
        default=None,
        help="Number of resamples of the test.  [default: 100000, or 10000 for more than 300 topics]",
    ),
    "margin": _option(
        "--margin",
        type=float,
        metavar="D",
        help="Equivalence margin: also test whether systems differ by less than D.",
    ),
    "host": _option("--host", metavar="NAME", default="127.0.0.1", show_default=True, help="Address to listen on."),
    "port": _option(
        "--port",
        type=click.IntRange(0, 65535),
        metavar="N",
        help="Port, or 0 for any free port.  [default: 8642, or the next free port]",
    ),
    "texts": _option(
        "--texts",
        metavar="FILE",
        help="Titles and texts of documents: a JSONL, CSV, Parquet, or TREC file, or a folder.",
    ),
    "queries": _option(
        "--queries",
        metavar="FILE",
        help="File of query texts. Other columns of the file can contain attributes of the queries.",
    ),
    "by": _option(
        "--by",
        multiple=True,
        metavar="NAME[,NAME]",
        help="Attributes to slice by, with one slice per value. Attributes are read from files or derived from the"
        " data (relevant, words, length, kind, first_relevant, ...).",
    ),
    "pool_depth": _option(
        "--pool-depth",
        type=click.IntRange(1),
        default=100,
        show_default=True,
        metavar="N",
        help="Pool depth: number of documents judged per run and topic.",
    ),
    "group": _option(
        "--group",
        multiple=True,
        metavar="RUN=GROUP",
        help="Group of a run. Runs of a group return similar documents and are left out together. Can be repeated.",
    ),
    "cutoff": _option("--cutoff", type=click.IntRange(1), default=10, show_default=True),
    "limit": _option("--limit", type=click.IntRange(1), show_default=True),
    "per_topic": _option("--per-topic", is_flag=True, help="Show the results of each topic."),
    "topic": _option("-t", "--topic", metavar="ID"),
    "scale": _option(
        "--scale",
        type=Choice("judged.stats.agreement:Scale"),
        default="ordinal",
        show_default=True,
        help="Measurement scale of the grades for Krippendorff's alpha.",
    ),
    "attributes": _option(
        "--attributes", metavar="FILE", help="Table of topic attributes: CSV, TSV, JSON, JSONL, or Parquet."
    ),
    "where": _option(
        "--where",
        metavar="EXPR",
        help="Use only topics that satisfy this condition, such as \"kind == 'law' and words < 5\".",
    ),
    "columns": _option(
        "--columns",
        expose_value=False,
        callback=_read_with,
        metavar="NAME=COLUMN[,...]",
        help="Names of columns in the input tables, such as doc_id=sku,query_id=search_term.",
    ),
    "normalize_ids": _option(
        "--normalize-ids",
        is_flag=True,
        expose_value=False,
        callback=_read_with,
        help="Ignore case, Unicode form, leading zeros, and a final .0 in query ids and document ids.",
    ),
    "qrels_format": _option(
        "--qrels-format", metavar="FORMAT", help="Format of QRELS.  [default: detected automatically]"
    ),
    "run_format": _option(
        "--run-format", metavar="FORMAT", help="Format of the runs.  [default: detected automatically]"
    ),
}


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def options_by_name(options: Sequence[Callable[[Any], Any]]) -> dict[str, click.Option]:
    """Return the click options that decorators add, by the names of their parameters."""
    command = click.command()(with_options(*options)(lambda: None))
    return {str(option.name): option for option in command.params if isinstance(option, click.Option)}


def shared(*names: str, **changes: Any) -> Callable[[Command], Command]:
    """Return a decorator that adds shared options to a command; `changes` replaces attributes, such as ``help``."""
    return with_options(*(_OPTIONS[name](**changes) for name in names))


_DEFAULT_LIMIT = 2**31 - 1
_LIMITS = {"seed": 2**63 - 1, "resamples": 1_000_000}


def prepare_command(command: click.Command) -> click.Command:
    """Add tolerance of spelling to the choices of a command and its subcommands, and limits to its numbers."""
    for param in command.params:
        if isinstance(param.type, click.Choice) and not isinstance(param.type, Choice):
            param.type = Choice(param.type.choices)
        if isinstance(param.type, click.types.IntParamType | click.types.FloatParamType):
            param.callback = _add_limits(param.callback)
    for subcommand in getattr(command, "commands", {}).values():
        prepare_command(subcommand)
    return command


def _add_limits(callback: Callable[..., Any] | None) -> Callable[..., Any]:
    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        limit = _LIMITS.get(param.name or "", _DEFAULT_LIMIT)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise click.BadParameter(f"The value must be a finite number, got {number}.", ctx, param)
            if isinstance(number, int) and abs(number) > limit:
                raise click.BadParameter(f"The absolute value must be at most {limit:,}, got {number}.", ctx, param)
        return value if callback is None else callback(ctx, param, value)

    return check


class LazyGroup(click.Group):
    """Group with commands in other modules, which are imported on first use.

    Parameters
    ----------
    *args, **kwargs
        Parameters of `click.Group`.
    places
        Commands in other modules as ``module:name``, by command name. The help lists them in this order, after the
        commands of the group's module.
    """

    def __init__(self, *args: Any, places: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.places = dict(places or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        del ctx
        return [*(name for name in self.commands if name not in self.places), *self.places]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, and import it if necessary."""
        del ctx
        if cmd_name in self.places and cmd_name not in self.commands:
            self.add_command(prepare_command(load(self.places[cmd_name])), cmd_name)
        return self.commands.get(cmd_name)
