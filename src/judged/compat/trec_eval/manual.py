"""The text of ``-h``: the options, the forms of files, and the pages of the measures that ``-m`` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.compat.trec_eval.options import USAGE_LINE
from judged.measures.pages import page
from judged.peers.trec_eval import ALL, NICKNAMES, expand, roots

if TYPE_CHECKING:
    from judged.compat.trec_eval.options import Options
    from judged.peers.trec_eval import Printed

_OPTIONS = """\
Evaluate the ranking in RUN against the judgments in QRELS, and print what trec_eval prints.
RUN may be - for standard input; both may be compressed.

  -h, --help                           show this text, with the pages of the measures that -m names
  -v, --version                        show the version
  -q, --query_eval_wanted              print lines for each topic too
  -n, --nosummary                      print no summary
  -c, --complete_rel_info_wanted       count a topic of QRELS that RUN lacks as 0
  -l, --level_for_rel LEVEL            lowest grade that is relevant; default 1
  -m, --measure MEASURE[.PARAMETERS]   a measure or a nickname; repeat for more; default official
  -M, --Max_retrieved_per_topic COUNT  use only the first documents of each topic
  -J, --Judged_docs_only               leave unjudged documents out of the rankings first
  -N, --Number_docs_in_coll COUNT      size of the collection, for utility
  -D, --Debug_level LEVEL[.TOPIC]      evaluate only this topic; nothing else is printed for a level
  -R, --Rel_info_format FORM           form of QRELS: qrels, qrels_jg, prefs, qrels_prefs
  -T, --Results_format FORM            form of RUN: trec_results
  -Z, --Zscore FILE                    print deviations from the means in FILE
      --dialect NAME                   trec_eval-10 (default) or trec_eval-9
  -o                                   does nothing

Exit code: 0 fine; 1 wrong options or no such measure; 2 a file that cannot be read, or senseless parameters;
4 a document twice in a topic, or a topic that RUN lacks without -c; 7 no topic; 255 FILE of -Z cannot be read."""

_FORMS = {
    "qrels": "Lines of QRELS: topic, a word that is ignored, document, grade. Grades are cut to whole numbers; a\n"
    "negative one says that the document was not judged.",
    "qrels_jg": "Lines of QRELS: topic, user, document, grade. Measures are computed for each user, and averaged.",
    "prefs": "Lines of QRELS: topic, user, group, document, level. Within a group of one user a document of a higher\n"
    "level is preferred to one of a lower level; the preferences of a user are carried on from group to group.",
    "qrels_prefs": "Lines of QRELS: topic, user, document, level. A user prefers a higher level to a lower one.",
}
_RUNS = """\
Lines of RUN: topic, a word that is ignored, document, rank (ignored), score, tag; more is ignored. Documents are
ordered by falling score, and those of equal score by falling document id, in bytes. Lines with # are comments."""

_TEXTS = {
    "runid": "The tag in the last line of RUN.",
    "relstring": "The grades of the first documents, a character each: 0 to 9, > above, - without a judgment, . for a\n"
    "negative grade. Only for topics. Its parameter is how many documents; default 10.",
}


def manual(options: Options) -> str:
    """Write the help that some options ask for."""
    parts = [USAGE_LINE, _OPTIONS]
    parts += [_FORMS[options.form]] if options.form in _FORMS else []
    parts += [_RUNS] if options.results_form == "trec_results" else []
    named = {root for spec in options.measures for root in roots(spec, options.dialect)}
    if named:
        parts += [_page(lines) for lines in _by_root(named, options)]
    else:
        nicknames = [f"  {nickname}: {' '.join(names)}" for nickname, names in NICKNAMES.items()]
        parts.append("\n".join(["Nicknames of measures:", *nicknames]))
        parts.append(f"Measures: {' '.join(ALL)}\n'trec_eval -h -m MEASURE' shows the page of one.")
    return "\n\n".join(parts) + "\n"


def _by_root(named: set[str], options: Options) -> list[list[Printed]]:
    found: dict[str, list[Printed]] = {}
    for line in expand(*(name for name in ALL if name in named), dialect=options.dialect):
        found.setdefault(line.root, []).append(line)
    return list(found.values())


def _page(lines: list[Printed]) -> str:
    first = lines[0]
    printed = ", ".join(line.name for line in lines)
    if first.kind == "text":
        return f"{first.root}: printed as {printed}\n\n{_TEXTS[first.root]}"
    return f"{first.root}: printed as {printed}; here {first.measure}\n\n{page(first.ours)}"
