"""`judged gate`: check whether a candidate run may replace the baseline."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError, JudgedWarning
from judged.interface import arguments
from judged.interface.arguments import OutputOptions, answer_options, print_warnings, write_result
from judged.interface.options import READING, Choice, prepare_command, shared, with_options
from judged.scoring.default_measures import DEFAULT_MEASURE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from judged.diagnosis.gates import GateConfig
    from judged.diagnosis.gates.answer import GateResult
    from judged.diagnosis.gates.config import GateTest

_FILE = click.Path(path_type=Path)


class _Gate(click.Command):
    """Command that delegates to ``judged gate init`` if its first argument is ``init``."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Create the context of the command ``init`` or of the gate; a file of that name is ``./init``."""
        if args[:1] == ["init"]:
            return init.make_context(f"{info_name} init", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command of the context."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


def gate_options(measure: str) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of a gate: the checks, and the formats of the result."""
    return with_options(
        click.option(
            "--config",
            type=_FILE,
            metavar="FILE",
            help="TOML file with checks, margins, slices, and guardrails."
            "  [default: gate.toml, unless -m or a margin is used]",
        ),
        shared(
            "measures",
            help=f"Measure that the gate checks if there is no configuration file. Can be repeated. "
            f" [default: {measure}]",
        ),
        shared(
            "margin",
            help="Margin of each check if there is no configuration file: largest acceptable loss in the measure.",
        ),
        click.option(
            "--margin-relative",
            type=float,
            metavar="SHARE",
            help="Margin as a share of the mean score of the baseline, such as 0.02 for 2%.",
        ),
        click.option(
            "--test",
            type=Choice("judged.diagnosis.gates.config:GateTest"),
            help="Statistical test.  [default: the test in the configuration, or else randomization]",
        ),
        click.option(
            "--strict/--not-strict",
            default=None,
            help="Treat inconclusive checks as failed.  [default: the setting in the configuration, or else"
            " --not-strict]",
        ),
        answer_options(junit=".xml", sarif=".sarif"),
        *(
            click.option(f"--{name}", type=_FILE, metavar="FILE", help=f"Additional output file: {description}.")
            for name, description in (
                ("markdown", 'Markdown, for example to "$GITHUB_STEP_SUMMARY"'),
                ("json", "JSON"),
                ("junit", "JUnit XML, with one test case for each check"),
                ("sarif", "SARIF, with one result for each check that did not pass"),
            )
        ),
    )


def load_config(
    config: Path | None,
    measures: tuple[str, ...] | None,
    margin: float | None,
    margin_relative: float | None,
    strict: bool | None,
    test: GateTest | None,
) -> tuple[GateConfig, Path | None]:
    """Return the configuration and its file; the default is gate.toml if no option defines a check."""
    from dataclasses import replace

    from judged.diagnosis.gates.config_file import config_of

    has_options = bool(measures) or margin is not None or margin_relative is not None
    file = config or (None if has_options else Path("gate.toml"))
    gate_config = config_of(file, measures or None, margin, margin_relative)
    if test is not None:
        gate_config = replace(gate_config, test=test)
    if strict is not None:
        gate_config = replace(
            gate_config, strict=strict, checks=tuple(replace(check, strict=None) for check in gate_config.checks)
        )
    return gate_config, file


def check_outputs(
    output: OutputOptions,
    gate_config: GateConfig,
    file: Path | None,
    paths: Sequence[str],
    others: Mapping[str, Path | None],
) -> None:
    """Raise an error if an output file is an input, or occurs twice."""
    referenced = [
        gate_config.attributes,
        gate_config.queries,
        *(guardrail.table for guardrail in gate_config.guardrails),
    ]
    inputs = [*paths, str(file or ""), *(str((file or Path()).parent / name) for name in referenced if name)]
    targets = [path for path in (output.out, *others.values()) if path is not None]
    for path in targets:
        if targets.count(path) > 1:
            raise InputError(
                "two outputs have the same file", fix="use a different file for each output", path=str(path)
            )
        arguments.keep_inputs(path, inputs)


def write_decision(result: GateResult, output: OutputOptions, others: Mapping[str, Path | None]) -> None:
    """Write a decision in all requested formats, and exit with its exit code."""
    for name, path in others.items():
        if path is not None:
            write_result(getattr(result, name)(), path)
    output(result)
    if output.out is not None and str(output.out) != "-":
        click.echo(result.verdict)
    if result.exit_code:
        raise SystemExit(result.exit_code)


@click.command(
    "gate", cls=_Gate, epilog="Write a first configuration with 'judged gate init QRELS BASELINE -o gate.toml'."
)
@click.argument("qrels")
@click.argument("baseline")
@click.argument("candidate")
@gate_options(DEFAULT_MEASURE)
@shared(*READING)
def gate_command(
    qrels: str,
    baseline: str,
    candidate: str,
    config: Path | None,
    measure: tuple[str, ...],
    margin: float | None,
    margin_relative: float | None,
    strict: bool | None,
    test: GateTest | None,
    output: OutputOptions,
    qrels_format: str | None,
    run_format: str | None,
    **others: Path | None,
) -> None:
    """Decide whether the run CANDIDATE may replace BASELINE, by the checks of a configuration, or by -m and --margin.

    A check fails if the loss is significantly larger than its margin, passes if it is significantly smaller, and is
    inconclusive otherwise. Exit code 0: no check failed; 1: a check failed, or a strict check was inconclusive; 2: the
    input is invalid.
    """
    from judged.data.qrels import Qrels
    from judged.diagnosis.gates import gate

    gate_config, file = load_config(config, measure or None, margin, margin_relative, strict, test)
    judgments = Qrels.read(qrels, format=qrels_format)
    first, second = (arguments.runs_at([path], run_format) for path in (baseline, candidate))
    check_outputs(output, gate_config, file, [qrels, *(run.where for run in (*first, *second))], others)
    with arguments.progress_bar([*first, *second]) as progress:
        result = gate(judgments, first, second, gate_config, progress=progress)
    write_decision(result, output, others)


@click.command("init")
@click.argument("qrels")
@click.argument("baseline")
@click.argument("others", nargs=-1, metavar="[RUN]...")
@shared("measures", help="Measure. Can be repeated.  [default: the measures recommended for the data]")
@shared("attributes", "queries", "by", "class_measures")
@click.option(
    "--margin-relative",
    type=float,
    metavar="SHARE",
    help="Margin of each check, as a share of the mean score of the baseline.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Write a configuration that treats inconclusive checks as failed, with margins at which most checks are"
    " conclusive.",
)
@click.option(
    "-o",
    "--output",
    "out",
    type=_FILE,
    default="gate.toml",
    show_default=True,
    metavar="FILE",
    help="Output file.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@shared(*READING)
def init(
    qrels: str,
    baseline: str,
    others: tuple[str, ...],
    measure: tuple[str, ...],
    by: tuple[str, ...],
    out: Path,
    force: bool,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Write a first configuration of a gate, from judgments and the BASELINE run.

    Other RUNs, such as earlier versions, are used to estimate how much differences vary over topics. Without other
    RUNs, this variation is assumed. In the file, a comment at each margin explains which losses the check can detect.
    """
    from judged.data.files import exists
    from judged.data.qrels import Qrels
    from judged.diagnosis.gates.first_config import first_config, first_error_rates

    if exists(out) and str(out) != "-" and not force:
        raise InputError(
            "the output file exists already", fix="use another name, or --force to overwrite it", path=str(out)
        )
    judgments = Qrels.read(qrels, format=qrels_format)
    first, other_runs = arguments.runs_at([baseline], run_format), arguments.runs_at(others, run_format)
    inputs = [options["attributes"] or "", options["queries"] or "", *(run.where for run in (*first, *other_runs))]
    arguments.keep_inputs(out, [qrels, *inputs])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", JudgedWarning)
        text = first_config(
            judgments, first, other_runs or None, measure or None, by=arguments.names_in(by), out=out, **options
        )
    write_result(text, out)
    print_warnings(str(warning.message) for warning in caught if issubclass(warning.category, JudgedWarning))
    if str(out) != "-":
        click.echo(
            f"The configuration was written to {out}. Next: judged gate {qrels} {baseline} CANDIDATE --config {out}"
        )
        if rates := first_error_rates(text):
            click.echo(f"First check: {rates} The comments in {out} explain how a margin changes these probabilities.")


prepare_command(init)  # `init` is not in the table of commands, where `LazyGroup` would call this
