"""The text of ``-h``: the options, the forms of files, and the pages of the measures that ``-m`` names."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from judged.compat.trec_eval.options import USAGE_LINE
from judged.measures.pages import page
from judged.peers.suggestions import parameters_of
from judged.peers.trec_eval import NICKNAMES, expand, names

if TYPE_CHECKING:
    from collections.abc import Iterable

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
4 a document twice in a topic, a topic that RUN lacks without -c, a measure that does not go with the form of QRELS,
or utility without 4 coefficients; 7 no topic; 255 FILE of -Z cannot be read."""

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
    "negative grade. Only for topics; without a parameter 10 documents.",
}


_PARAMETERS = re.compile(r"^(?:## Parameters\n.*?(?=^## )|It has no parameters\.\n\n)", re.MULTILINE | re.DOTALL)


def manual(options: Options) -> str:
    """Write the help that some options ask for."""
    parts = [USAGE_LINE, _OPTIONS]
    parts += [_FORMS[options.form]] if options.form in _FORMS else []
    parts += [_RUNS] if options.results_form == "trec_results" else []
    if options.measures:
        parts += [_page(lines) for lines in _by_root(options)]
    else:
        there = names(options.dialect)
        groups = {group: [name for name in several if name in there] for group, several in NICKNAMES.items()}
        parts.append("\n".join(["Nicknames of measures:", *(_listed(f"  {name}:", groups[name]) for name in groups)]))
        parts.append(f"{_listed('Measures:', there)}\n'judged trec_eval -h -m MEASURE' shows the page of one.")
    return "\n\n".join(parts) + "\n"


def _listed(start: str, words: Iterable[str], between: str = " ") -> str:
    """Write words behind a start, in lines of the terminal's width."""
    text = f"{start} {between.join(words)}"
    return textwrap.fill(text, 116, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _by_root(options: Options) -> list[list[Printed]]:
    found: dict[str, list[Printed]] = {}
    asked = {"level": options.level, "collection": options.collection}
    for line in expand(*options.measures, **asked, dialect=options.dialect):
        found.setdefault(line.root, []).append(line)
    return list(found.values())


def _page(lines: list[Printed]) -> str:
    """Write our page of a measure, with trec_eval's parameters in place of ours."""
    first = lines[0]
    parts = [_listed(f"{first.root}: printed as", [line.name for line in lines], ", ")]
    form = parameters_of(first.root)
    parts.append(f"Its parameters are {form}" if form else "It takes no parameters.")
    if first.kind == "text":
        return "\n\n".join([parts[0], _TEXTS[first.root], parts[1]])
    parts.insert(1, _listed("In judged:", [str(line.measure) for line in lines], ", "))
    return "\n\n".join(["\n".join(parts), _PARAMETERS.sub("", page(first.ours))])
