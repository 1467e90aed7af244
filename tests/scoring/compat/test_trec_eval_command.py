"""The command as a whole, on files small enough to compute by hand."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from judged.scoring.compat.trec_eval.command import CommandResult, trec_eval

if TYPE_CHECKING:
    from pathlib import Path

QRELS = "1 0 a 1\n1 0 b 0\n1 0 c 2\n1 0 d -1\n2 0 e 1\n2 0 f 0\n"
RUN = "1 Q0 x 1 4 t\n1 Q0 c 2 3 t\n1 Q0 d 3 2 t\n1 Q0 b 4 1 last\n"  # topic 2 is missing
BOTH = RUN + "2 Q0 f 1 2 t\n2 Q0 e 2 1 t\n"


class Folder:
    """A folder with judgments and a run, and the command in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(
        self, *arguments: str, qrels: str | bytes = QRELS, run: str | bytes = RUN, means: str | None = None
    ) -> CommandResult:
        for name, text in (("qrels", qrels), ("run", run), ("means", means or "")):
            (self.path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        zscores = [] if means is None else ["-Z", str(self.path / "means")]
        return trec_eval([*arguments, *zscores, str(self.path / "qrels"), str(self.path / "run")])

    def lines(self, *arguments: str, qrels: str = QRELS, run: str = RUN, means: str | None = None) -> list[str]:
        """Give what is printed, blanks in a row as one, where all is well."""
        outcome = self(*arguments, qrels=qrels, run=run, means=means)
        assert (outcome.code, outcome.message) == (0, "")
        return [" ".join(line.split()) for line in outcome.output.splitlines()]


@pytest.fixture
def command(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_lines_are_laid_out_as_by_printf(command: Folder) -> None:
    outcome = command("-q", "-m", "map", "-m", "num_q", "-m", "runid", "-m", "num_nonrel_judged_ret", run=BOTH)
    assert outcome.output == (
        "map                   \t1\t0.2500\n"
        "num_nonrel_judged_ret \t1\t1\n"
        "map                   \t2\t0.5000\n"
        "num_nonrel_judged_ret \t2\t1\n"
        "runid                 \tall\tt\n"
        "num_q                 \tall\t2\n"
        "map                   \tall\t0.3750\n"
        "num_nonrel_judged_ret \tall\t2\n"
    )


def test_without_options_the_official_measures(command: Folder) -> None:
    lines = command.lines(run=BOTH)
    assert [line.split()[0] for line in lines[:10]] == [
        "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref", "recip_rank",
    ]  # fmt: skip
    assert len(lines) == 30
    assert lines[2:7] == ["num_ret all 6", "num_rel all 3", "num_rel_ret all 2", "map all 0.3750", "gm_map all 0.3536"]


def test_no_summary(command: Folder) -> None:
    assert command.lines("-q", "-n", "-m", "map", "-m", "gm_map", "-m", "relstring", run=BOTH) == [
        "map 1 0.2500", "relstring 1 '-2.0'", "map 2 0.5000", "relstring 2 '01'",
    ]  # fmt: skip
    assert command.lines("-n", run=BOTH) == []


def test_a_missing_topic_stops_behind_the_topics_before_it(command: Folder) -> None:
    outcome = command("-q", "-m", "map", "-m", "num_q")
    assert (outcome.output, outcome.code) == ("map                   \t1\t0.2500\n", 4)
    assert "topic 2 of" in outcome.message
    assert "Fix: use -c" in outcome.message
    assert command("-m", "map").output == ""
    assert command("-m", "num_q").code == 4
    assert command("-q", "-m", "map", qrels="0 0 z 1\n" + QRELS).output == ""


def test_a_missing_topic_counts_as_0(command: Folder) -> None:
    """The values that escape being set to 0 are trec_eval's: it knows the lines by their whole names."""
    measures = ["num_ret", "map", "yaap", "utility", "relstring", "rbp_resid", "unj.1", "num_rel", "gm_map", "num_q"]
    lines = command.lines("-qc", *(part for name in measures for part in ("-m", name)))
    assert [line for line in lines if line.split()[1] == "2"] == [
        "num_ret 2 0", "num_rel 2 1", "map 2 0.0000", "relstring 2 ''", "utility 2 0.0000", "yaap 2 -0.6931",
        "rbp_resid 2 0.0000", "unj_1 2 0.0000",
    ]  # fmt: skip
    assert "map all 0.1250" in lines
    assert "num_q all 2" in lines
    assert "gm_map all 0.0016" in lines  # sqrt(0.25 * 0.00001)
    escaping = command.lines("-qcn", "-m", "utility.1,-1,0,0", "-m", "relstring.5", "-m", "rbp_resid.p=0.5")
    assert escaping[3:] == ["relstring_5 2 '-'", "utility_1,-1,0,0 2 -1.0000", "rbp_resid_p=0.5 2 1.0000"]


def test_num_rel_of_the_summary_ignores_the_level_with_c(command: Folder) -> None:
    """A quirk of trec_eval: with -c it counts every positive grade of the file."""
    assert command.lines("-q", "-c", "-l2", "-m", "num_rel") == ["num_rel 1 1", "num_rel 2 0", "num_rel all 3"]
    assert command.lines("-l2", "-m", "num_rel", run=BOTH) == ["num_rel all 1"]


def test_the_old_dialect_leaves_missing_topics_out(command: Folder) -> None:
    old = ["--dialect", "trec_eval-9", "-q", "-m", "map", "-m", "num_q", "-m", "gm_map", "-m", "num_rel"]
    assert command.lines(*old) == [
        "num_rel 1 2", "map 1 0.2500", "num_q all 1", "num_rel all 2", "map all 0.2500", "gm_map all 0.2500",
    ]  # fmt: skip
    assert command.lines("-c", *old) == [
        "num_rel 1 2", "map 1 0.2500", "num_q all 2", "num_rel all 3", "map all 0.1250", "gm_map all 0.0016",
    ]  # fmt: skip
    nothing = command(*old, run="9 Q0 a 1 1 t\n")
    assert (nothing.output, nothing.code) == ("", 7)


def test_the_old_dialect_compares_scores_in_single_precision(command: Folder) -> None:
    """Two documents at 0.100000002 and 0.100000001: recip_rank is 1 in trec_eval 10, 0.5 in 9.0.8."""
    files = {"qrels": "1 0 a 1\n", "run": "1 Q0 a 1 0.100000002 t\n1 Q0 z 2 0.100000001 t\n"}
    assert command.lines("-m", "recip_rank", **files) == ["recip_rank all 1.0000"]
    assert command.lines("-m", "recip_rank", "--dialect", "trec_eval-9", **files) == ["recip_rank all 0.5000"]


def test_recall_points_of_the_dialects(command: Folder) -> None:
    """R = 5 and recall 0.1: nearest of 0.5 is 1, and so is the whole part of 1.4; R = 4: 0 and 1."""
    qrels = "".join(f"1 0 r{i} 1\n" for i in range(4))
    run = "1 Q0 x 1 9 t\n1 Q0 r0 2 8 t\n1 Q0 r1 3 7 t\n1 Q0 r2 4 6 t\n"
    ask = ["-m", "iprec_at_recall.0.1,0.5"]
    assert command.lines(*ask, qrels=qrels, run=run)[0] == "iprec_at_recall_0.10 all 0.7500"
    late = "1 Q0 r0 1 9 t\n1 Q0 x 2 8 t\n1 Q0 y 3 7 t\n1 Q0 r1 4 6 t\n"
    assert command.lines(*ask, qrels=qrels, run=late)[1] == "iprec_at_recall_0.50 all 0.5000"


def test_level_depth_and_collection(command: Folder) -> None:
    ask = ["-m", "recip_rank", "-m", "num_rel_ret", "-m", "ndcg"]
    plain, strict = command.lines(*ask, run=BOTH), command.lines("-l2", *ask, run=BOTH)
    assert plain == ["num_rel_ret all 2", "recip_rank all 0.5000", "ndcg all 0.5553"]
    assert strict == ["num_rel_ret all 1", "recip_rank all 0.2500", "ndcg all 0.5553"]
    assert command.lines("-M1", "-q", "-m", "num_ret", run=BOTH) == ["num_ret 1 1", "num_ret 2 1", "num_ret all 2"]
    # tp 1, fp 3, fn 1 and 10 - 5 others: 1 - 3 + 0 + 5
    assert command.lines("-N10", "-qn", "-m", "utility.1,-1,0,1", "-D0.1") == ["utility_1,-1,0,1 1 3.0000"]


def test_only_judged_documents(command: Folder) -> None:
    """Of x c d b only c and b are judged: c moves to rank 1."""
    ask = ["-J", "-q", "-n", "-m", "num_ret", "-m", "map", "-m", "P.5", "-m", "relstring", "-m", "unj.5"]
    assert command.lines(*ask, run=BOTH)[:5] == [
        "num_ret 1 2", "map 1 0.5000", "P_5 1 0.2000", "relstring 1 '20'", "unj_5 1 0.0000",
    ]  # fmt: skip


@pytest.mark.parametrize("how", [["-J", "-D0.1"], ["-M0", "-D0.1"], ["-J", "-c", "-D0.1"]])
def test_nothing_left_divides_0_by_0(command: Folder, how: list[str]) -> None:
    """R = 2: the recalls 0, 0.1 and 0.2 need no document, 0.3 needs one."""
    run = "1 Q0 x 1 4 t\n"
    ask = ["-qn", "-m", "iprec_at_recall.0,0.2,0.3", "-m", "11pt_avg", "-m", "11pt_avg", "-m", "map", "-m", "Rprec"]
    outcome = command(*how, *ask, run=run)
    assert outcome.output == (
        "map                   \t1\t0.0000\n"
        "Rprec                 \t1\t0.0000\n"
        "iprec_at_recall_0.00  \t1\t  -nan\n"
        "iprec_at_recall_0.20  \t1\t  -nan\n"
        "iprec_at_recall_0.30  \t1\t0.0000\n"
        "11pt_avg              \t1\t  -nan\n"
    )
    assert command(*how, "-m", "11pt_avg..5", run=run).output == "11pt_avg_.5           \tall\t0.0000\n"


def test_one_topic(command: Folder) -> None:
    assert command.lines("-D", "0.2", "-m", "map", "-m", "num_q", run=BOTH) == ["num_q all 1", "map all 0.5000"]
    assert command("-D0.2", "-m", "map").code == 4
    assert command.lines("-c", "-D0.2", "-m", "map") == ["map all 0.0000"]
    nowhere = command("-D0.3", "-m", "map", run=BOTH)
    assert (nowhere.output, nowhere.code) == ("", 7)


def test_a_document_twice_in_a_topic(command: Folder) -> None:
    twice = BOTH + "2 Q0 e 3 0.5 t\n"
    outcome = command("-q", "-m", "map", run=twice)
    assert (outcome.output, outcome.code) == ("map                   \t1\t0.2500\n", 4)
    assert "document e is returned twice" in outcome.message
    assert command.lines("-q", "-M2", "-m", "map", run=twice)[-1] == "map all 0.3750"  # cut off before it is seen
    assert command.lines("-M0", "-m", "num_ret", run=twice) == ["num_ret all 0"]
    assert command.lines("-m", "num_q", run=twice) == ["num_q all 2"]
    assert command.lines("-m", "map", run=BOTH + 2 * "7 Q0 e 3 0.5 t\n") == ["map all 0.3750"]  # not in the qrels
    assert command.lines("-D0.1", "-m", "map", run=twice) == ["map all 0.2500"]


def test_a_document_judged_twice(command: Folder) -> None:
    """The second field says nothing here, so another one does not make another judgment."""
    for line in ("2 0 e 1\n", "2 1 e 0\n"):
        outcome = command("-q", "-m", "map", qrels=QRELS + line, run=BOTH)
        assert (outcome.output, outcome.code) == ("map                   \t1\t0.2500\n", 4)
        assert "document e is judged twice for topic 2" in outcome.message
        assert command.lines("-m", "num_q", qrels=QRELS + line, run=BOTH) == ["num_q all 2"]


def test_zscores(command: Folder) -> None:
    means = "1 map 0.05 0.1\n2 map 0.3 0.1\n1 num_ret 2 4\n2 num_ret 2 0\n1 P_5 0.1 0\n1 gm_map -1 1\n2 gm_map -1 1\n"
    ask = ["-q", "-m", "map", "-m", "num_ret", "-m", "P.5", "-m", "num_q", "-m", "runid", "-m", "relstring.2"]
    assert command(*ask, "-m", "gm_map", run=BOTH, means=means).output.splitlines() == [
        "Znum_ret               \t1\t0.5000",
        "Zmap                   \t1\t2.0000",
        "ZP_5                   \t1\t-1000000.0000",
        "relstring_2           \t1\t'-2'",
        "Znum_ret               \t2\t0.0000",
        "Zmap                   \t2\t2.0000",
        "ZP_5                   \t2\t-1000000.0000",
        "relstring_2           \t2\t'01'",
        "runid                 \tall\tt",
        "Znum_q                 \tall\t2.0000",
        "Znum_ret               \tall\t0.5000",
        "Zmap                   \tall\t2.0000",
        "Zgm_map                \tall\t0.9611",  # exp of the mean of ln(0.25) + 1 and ln(0.5) + 1
        "ZP_5                   \tall\t-1000000.0000",
    ]
    for bad in ("1 map 0.1\n", "1 map 0.1 0.1\n\n", "1 map 0.1 0.1 0.1\n", ""):
        assert command(*ask, run=BOTH, means=bad).code == 255


@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        ("", RUN),
        (QRELS, ""),
        (QRELS + "\n", RUN),
        ("\n" + QRELS, RUN),
        (QRELS + "1 0 z\n", RUN),
        (QRELS + "1 0 z 1 extra\n", RUN),
        ("1 a 1\n2 e 1\n", RUN),
        ("1 0 a 1 0.5\n2 0 e 1 0.5\n", RUN),
        ("1 0 a good\n2 0 e bad\n", RUN),
        (QRELS, RUN + "1 Q0 z 5 0.1\n"),
        (QRELS, "1 Q0 a 1 2\n1 Q0 b 2 1\n"),
        (QRELS, "1 a 2\n1 b 1\n"),
        (QRELS, "1 Q0 a 1 nan t\n"),
        (QRELS, "1 Q0 a 1 high t\n"),
        (QRELS, "1 Q0 a 1 1,5 t\n"),
        (QRELS.encode().replace(b"c", b"\xff"), RUN),
        (QRELS, b"\xff\xfe1 Q0 a 1 1 t\n"),
        (gzip.compress(QRELS.encode())[:-9], RUN),
    ],
)
def test_files_that_are_refused(command: Folder, qrels: str | bytes, run: str | bytes) -> None:
    outcome = command("-c", "-m", "map", qrels=qrels, run=run)
    assert (outcome.output, outcome.code) == ("", 2)
    assert outcome.message.startswith("error: ")
    assert "Fix: " in outcome.message


def test_messages_name_the_line(command: Folder) -> None:
    assert f"{command.path / 'qrels'}:7: a blank line" in command("-c", qrels=QRELS + "\n").message
    assert f"{command.path / 'qrels'}:7: 5 fields" in command("-c", qrels=QRELS + "1 0 z 1 1\n").message
    short = command("-c", run=RUN + "1 Q0 z 5 -1.5e-3\n")
    assert short.code == 2
    assert f"{command.path / 'run'}:5: the run tag is missing: 5 fields, expected at least 6" in short.message
    assert short.message.endswith("Fix: add a sixth column with any word; 'judged evaluate' reads runs without a tag.")
    assert "Fix: write topic, Q0, document, rank, score, tag." in command("-c", run=RUN + "1 Q0 z 1 t\n").message
    assert "the run tag is missing" in command("-c", run="1\tQ0\ta\t1\t3\n").message
    missing = trec_eval(["nowhere", str(command.path / "run")])
    assert (missing.code, missing.message) == (2, "error: nowhere: there is no such file. Fix: check the path.")


@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        (QRELS.replace("\n", "\r\n"), BOTH.replace("\n", "\r\n")),
        (QRELS.replace(" ", "\t"), BOTH.replace(" ", "  \t")),
        ("\ufeff" + QRELS, "\ufeff" + BOTH),
        (QRELS.rstrip(), BOTH.rstrip()),
        (QRELS, "\n  \n" + BOTH.replace("\n", "\n\n")),
        ("# one\n# two\n" + QRELS + "# end", "# tag: t\n" + BOTH + "#\n"),
        (gzip.compress(QRELS.encode()), gzip.compress(BOTH.encode())),
        (QRELS, BOTH.replace(" t\n", " t more words\n")),
        (" " + QRELS, " " + BOTH),
    ],
)
def test_files_that_are_taken(command: Folder, qrels: str | bytes, run: str | bytes) -> None:
    outcome = command("-q", "-m", "all_trec", qrels=qrels, run=run)
    assert outcome == command("-q", "-m", "all_trec", run=BOTH)
    assert outcome.code == 0


def test_fractions_of_grades_are_ignored_with_a_warning(command: Folder) -> None:
    qrels = QRELS.replace("c 2", "c 2.9").replace("b 0", "b -0.9").replace("d -1", "d -1.5")
    outcome = command("-q", "-m", "all_trec", qrels=qrels, run=BOTH)
    integers = command("-q", "-m", "all_trec", run=BOTH)
    assert (outcome.output, outcome.code, integers.message) == (integers.output, 0, "")
    assert f": 3 of {QRELS.count(chr(10))} grades " in outcome.message


def test_grades_that_stop_trec_eval(command: Folder) -> None:
    """All judgments of a topic negative: a crash there. A grade of a thousand million: memory for each below it."""
    assert command.lines("-q", "-m", "map", "-m", "infAP", "-m", "ndcg", qrels="1 0 c -2\n1 0 d -1\n")[-3:] == [
        "map all 0.0000", "infAP all 0.0000", "ndcg all 0.0000",
    ]  # fmt: skip
    assert command.lines("-m", "ndcg", "-m", "relstring", "-q", qrels="1 0 c 1000000000\n1 0 d 1\n") == [
        "relstring 1 '->1-'", "ndcg 1 0.6309", "ndcg all 0.6309",
    ]  # fmt: skip


def test_ties_go_by_the_bytes_of_ids_falling(command: Folder) -> None:
    grades = "".join(f"1 0 {doc} {grade}\n" for grade, doc in enumerate(["Z", "a", "é", "doc10", "doc9"]))
    run = "".join(f"1 Q0 {doc} 0 1 t\n" for doc in ["Z", "a", "é", "doc10", "doc9"])
    assert command.lines("-qn", "-m", "relstring", qrels=grades, run=run) == ["relstring 1 '24310'"]


def test_gains_below_one_are_put_in_order(command: Folder) -> None:
    """trec_eval prints 0.0000 for one order of these pairs and 0.8785 for the other, on the same files."""
    first = command.lines("-D0.1", "-m", "ndcg.2=0.9,1=0.5,0=0")[0].split()[-1]
    assert first == command.lines("-D0.1", "-m", "ndcg.0=0,1=0.5,2=0.9")[0].split()[-1]
    assert first == "0.4672"  # 0.9 / log2(3), divided by 0.9 + 0.5 / log2(3)


def test_forms_and_measures_that_do_not_go_together(command: Folder) -> None:
    assert command("-R", "qrels", "-m", "prefs_simp", run=BOTH).code == 4
    assert command("-R", "qrels", "-m", "map_avgjg", run=BOTH).code == 4
    assert command("-R", "qrels_jg", "-m", "map", run=BOTH).code == 4
    assert command("-R", "qrels_prefs", "-m", "map", run=BOTH).code == 4
    assert command.lines("-R", "qrels_jg", "-m", "num_q", run=BOTH) == ["num_q all 2"]
    assert command("-R", "csv").code == 2
    assert command("-T", "csv").code == 2
    assert command("-m", "P.0", run=BOTH).code == 2
    assert command("-m", "utility.1", run=BOTH).code == 4


def test_the_tag_of_the_last_line_wins(command: Folder) -> None:
    assert command.lines("-m", "runid", run=BOTH + "9 Q0 z 1 1 end more\n# end\n\n") == ["runid all end"]


def test_a_run_from_standard_input(command: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    command(run=BOTH)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BOTH.encode())))
    outcome = trec_eval(["-m", "map", "-m", "runid", str(command.path / "qrels"), "-"])
    assert outcome.output == "runid                 \tall\tt\nmap                   \tall\t0.3750\n"


def test_help_and_version() -> None:
    text = trec_eval(["-h"]).output
    assert "--Max_retrieved_per_topic" in text
    assert "official: runid num_q num_ret" in text
    page = trec_eval(["-h", "-m", "set_F.2", "-m", "relstring", "-R", "prefs"]).output
    assert (
        "set_F: printed as set_F_2\nIn judged: SetF(beta=1.4142135623730951)\nParameters of set_F: the weight" in page
    )
    assert "Weighted harmonic mean" in page
    assert "relstring: printed as relstring" in page
    assert "topic, user, group, document, level" in page
    version = trec_eval(["-qv", "q"])
    assert (version.output, version.code) == ("", 0)
    assert "with the rules of trec_eval-10" in version.message


def test_pages_are_about_what_was_asked() -> None:
    """trec_eval's parameters stand in place of ours, and no line is wider than a terminal."""
    page = trec_eval(["-h", "-m", "ndcg_cut.5", "-m", "ndcg", "-m", "map"]).output
    assert (
        "ndcg_cut: printed as ndcg_cut_5\nIn judged: nDCG@5\nParameters of ndcg_cut: cutoffs: ndcg_cut.5,10\n" in page
    )
    assert "Parameters of ndcg: the gain of each grade: ndcg.1=3,2=9\n" in page
    assert "map: printed as map\nIn judged: AP\nmap takes no parameters.\n" in page
    assert "## Parameters" not in page
    assert page.count("## When to use it") == 3
    assert "In judged: nDCG@5, nDCG@10,\n" not in trec_eval(["-h", "-m", "P"]).output
    assert trec_eval(["-h", "-m", "P.0"]).code == 2
    assert max(map(len, trec_eval(["-h"]).output.splitlines())) <= 120
    assert " rbp" not in trec_eval(["-h", "--dialect", "trec_eval-9"]).output


@pytest.mark.parametrize("name", ["iprec_at_recall", "set_P"])
def test_pages_keep_all_but_parameters(name: str) -> None:
    page = trec_eval(["-h", "-m", name]).output
    sections = [
        "## When to use it",
        "## When it misleads",
        "## Properties",
        "## Other names",
        "## Examples",
        "Source: ",
    ]
    assert [part for part in sections if part not in page] == []
    assert "It has no parameters" not in page


def test_preferences_without_measures(command: Folder) -> None:
    outcome = command("-R", "prefs", qrels="1 u g a 1\n")
    problem = "num_ret cannot be computed from judgments in the format prefs"
    assert (outcome.code, outcome.message) == (4, f"error: {problem}. Fix: -m prefs")
    assert command("-R", "qrels_jg", "-m", "map").message.endswith("qrels_jg. Fix: -m qrels_jg, or -R qrels")
    assert command("-m", "map_avgjg").message.endswith("the format qrels. Fix: -R qrels_jg")


def test_every_measure_has_a_page() -> None:
    assert trec_eval(["-h", "-m", "all_trec", "-m", "yaap", "-m", "dcg", "-m", "ideal_dcg"]).code == 0


def test_every_measure_of_preferences_and_users_has_a_page() -> None:
    assert trec_eval(["-h", "-m", "all_prefs", "-m", "qrels_jg"]).code == 0


LEVELS = {"d1": "3.0", "d2": "2.0", "d3": "0.0", "d4": "6.0", "d5": "0.0", "d6": "2.0"}


@pytest.mark.parametrize(("form", "line"), [("prefs", "q u g {doc} {level}\n"), ("qrels_prefs", "q u {doc} {level}\n")])
def test_preferences(command: Folder, form: str, line: str) -> None:
    """The example of trec_eval's help: six documents of one user express 13 preferences.

    d6 above d4 and d1 breaks two. Ties go by rising id here, and only here.
    """
    qrels = "".join(line.format(doc=doc, level=level) for doc, level in LEVELS.items())
    run = "q Q0 d6 1 9 t\n" + "".join(f"q Q0 {doc} 2 {score} t\n" for doc, score in
                                      [("d4", 5), ("d1", 4), ("d2", 3), ("d5", 2), ("d3", 2)])  # fmt: skip
    assert command.lines("-R", form, "-m", "prefs", qrels=qrels, run=run) == [
        "runid all t", "num_q all 1", "prefs_num_prefs_poss all 13", "prefs_num_prefs_ful all 11",
        "prefs_num_prefs_ful_ret all 11", "prefs_simp all 0.8462", "prefs_pair all 0.8462", "prefs_avgjg all 0.8462",
    ]  # fmt: skip
    tied = "".join(f"q Q0 {doc} 1 1 t\n" for doc in LEVELS)  # d1 keeps 4, d2 and d4 keep 2
    assert command.lines("-R", form, "-m", "prefs_num_prefs_ful", qrels=qrels, run=tied) == [
        f"prefs_num_prefs_ful all {4 + 2 + 2}"
    ]
    assert command("-R", form, "-m", "prefs", qrels=qrels + "q u\n", run=run).code == 2


def test_several_users(command: Folder) -> None:
    """To u the relevant document is a, to v it is b and c: AP 1 and (1/2 + 2/3) / 2."""
    qrels = "q u a 1\nq u b 0\nq v b 1\nq v c 2\nq v a -1\n"
    run = "q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 c 3 1 t\n"
    ask = ["-R", "qrels_jg", "-m", "map_avgjg", "-m", "P_avgjg.2", "-m", "Rprec_mult_avgjg.1"]
    assert command.lines(*ask, qrels=qrels, run=run) == [
        "map_avgjg all 0.7917", "P_avgjg_2 all 0.5000", "Rprec_mult_avgjg_1.00 all 0.7500",
    ]  # fmt: skip
    # without a, which v did not judge: b c, both relevant; without c, which u did not judge: a b
    assert command.lines("-J", *ask, qrels=qrels, run=run)[:2] == ["map_avgjg all 1.0000", "P_avgjg_2 all 0.7500"]
    assert command(*ask, qrels=qrels + "q u a 0\n", run=run).code == 2


def test_the_process(command: Folder) -> None:
    """Bytes and exit codes reach the outside; nothing is taken from the arguments on the way."""
    command(run=BOTH)
    judged = [sys.executable, "-m", "judged", "trec_eval"]
    files = [str(command.path / "qrels"), str(command.path / "run")]
    done = subprocess.run([*judged, "-qn", "-mmap", "--", *files], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"map                   \t1\t0.2500\nmap                   \t2\t0.5000\n"
    wrong = subprocess.run([*judged, "-m", "nDCG@10", *files], capture_output=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (1, b"")
    assert b"there is no measure 'nDCG@10'" in wrong.stderr
    for helps in ("-h", "--help"):
        help_text = subprocess.run([*judged, helps], capture_output=True, check=False)
        assert (help_text.returncode, help_text.stderr) == (0, b"")
        assert b"usage: judged trec_eval" in help_text.stdout


def test_the_script_of_its_own(command: Folder) -> None:
    command(run=BOTH)
    start = "from judged.cli.main import trec_eval_script as run; run()"
    files = [str(command.path / "qrels"), str(command.path / "run")]
    done = subprocess.run([sys.executable, "-c", start, "-m", "map", *files], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"map                   \tall\t0.3750\n", b"")
    wrong = subprocess.run([sys.executable, "-c", start, "-cD0.9", *files], capture_output=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (7, b"")
