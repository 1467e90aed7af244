"""`judged explain`: how the score of one topic comes about, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, shared
from judged.errors import InputError, JudgedError

if TYPE_CHECKING:
    from judged.cli.formats import Give
    from judged.scoring.judging import Judged, TiePolicy
    from judged.scoring.measures.base import Measure


@click.command("explain", short_help="Show step by step how the score of a topic is computed.")
@click.argument("qrels", required=False)
@click.argument("run", required=False)
@click.option(
    "--grades",
    metavar="LIST",
    help="Instead of QRELS and RUN: the grades of one ranking, such as '3 0 - 1', where - is an unjudged document.",
)
@click.option(
    "--missing",
    metavar="LIST",
    default="",
    help="With --grades: the grades of judged documents that were not returned.",
)
@click.option("-t", "--topic", metavar="ID", help="The topic; optional if the qrels have only one.")
@click.option(
    "-m", "--measure", multiple=True, metavar="NAME", help="A measure, such as nDCG@10. Repeat for more.", required=True
)
@click.option(
    "--as",
    "tools",
    metavar="TOOLS",
    help="Show what these tools report, and which of their rules makes the difference:"
    " trec_eval-10, trec_eval-9, gdeval, ranx, ir_measures, ...; separate several with"
    " commas, or say all.",
)
@click.option(
    "--rel",
    type=float,
    metavar="GRADE",
    help="The lowest relevant grade; with --as, the one that the tools are given, like trec_eval's -l.",
)
@click.option("--depth", type=click.IntRange(1), metavar="N", help="Use only the first N documents.")
@shared("order", "documents", "texts")
@click.option("--queries", metavar="FILE", help="Texts of the queries.")
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str | None,
    run: str | None,
    grades: str | None,
    missing: str,
    topic: str | None,
    measure: tuple[str, ...],
    tools: str | None,
    rel: float | None,
    depth: int | None,
    ties: TiePolicy,
    documents: str | None,
    texts: str | None,
    queries: str | None,
    give: Give,
    qrels_format: str | None,
    run_format: str | None,
) -> None:
    """Show step by step how the score of one topic of RUN is computed.

    The measure itself records its intermediate numbers, so what is shown is what was computed. With --as, show what
    other tools report for the topic, and why.
    """
    from judged.data.topics import Topics
    from judged.results import Several
    from judged.results.notes import lines
    from judged.scoring.evaluation.inputs import measures_of
    from judged.scoring.evaluation.notes import origin_notes
    from judged.scoring.explanation import Explanation, compare_tools, explain_list

    if grades is None:
        judged = _read(qrels, run, qrels_format, run_format, {"ties": ties, "depth": depth, "documents": documents})
    else:
        others = {"QRELS": qrels, "RUN": run, "--topic": topic, "--documents": documents, "--texts": texts}
        judged = _typed(grades, missing, depth, others)
    wanted = measures_of(measure, rel=rel if tools is None else None)
    if topic is None and len(judged) != 1:
        raise InputError(f"there are {len(judged)} topics", fix=f"add --topic, such as --topic {judged.query_ids[0]}")
    chosen = judged.query_ids[0] if topic is None else topic
    give.keep(qrels, run, documents, queries, texts)
    if texts and tools is not None:
        raise InputError("--texts shows titles beside the steps, and --as shows no steps", fix="leave one of them out")
    text = Topics.read(queries).text(chosen) if queries else ""
    answers = [
        explain_list(judged, one, chosen)
        if tools is None
        else compare_tools(judged.qrels, judged.run, chosen, one, tools, rel=rel)
        for one in wanted
    ]
    parts = tuple(replace(answer, query=text) for answer in answers)
    if texts:
        parts = tuple(part.titled(texts) for part in parts if isinstance(part, Explanation))
    unused = documents and not any(_asks_for_documents(one, judged.only(chosen)) for one in wanted)
    note = "no measure here asks for --documents; titles and texts are shown with --texts FILE"
    notes = [*lines(origin_notes(judged.qrels.origin)), *([note] if unused else [])]
    give(parts[0] if len(parts) == 1 else Several(parts), notes=notes)


def _asks_for_documents(measure: Measure, judged: Judged) -> bool:
    """Whether a measure cannot be computed without facts about documents."""
    try:
        measure(replace(judged, documents=None))
    except JudgedError:
        return True
    return False


def _read(
    qrels: str | None, run: str | None, qrels_format: str | None, run_format: str | None, how: dict[str, Any]
) -> Judged:
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.scoring.judging import judge

    if qrels is None or run is None:
        raise InputError("QRELS and RUN are missing", fix="name both files, or give a list with --grades '3 0 - 1'")
    return judge(Qrels.read(qrels, format=qrels_format), Run.scan(run, format=run_format), **how)


def _typed(grades: str, missing: str, depth: int | None, others: dict[str, str | None]) -> Judged:
    """Judge a ranking that was typed as grades."""
    from judged.results.decimals import read_number
    from judged.scoring.judging import judge_list
    from judged.scoring.judging.variants import cut

    if given := [name for name, value in others.items() if value is not None]:
        names = ", ".join(given)
        raise InputError(
            f"--grades replaces files and topics, but {names} was given too", fix="leave one of the two out"
        )
    found: list[list[float | None]] = []
    for text in (grades, missing):
        try:
            found.append([None if grade == "-" else read_number(grade) for grade in text.replace(",", " ").split()])
        except ValueError:
            raise InputError(
                f"{text!r} is not a list of grades", fix="write numbers, and - for an unjudged document"
            ) from None
    judged = judge_list(found[0], missing=[grade for grade in found[1] if grade is not None])
    return judged if depth is None else cut(judged, depth)
