"""Names of trec_eval: what they stand for here, in which order, and how they are printed."""

from __future__ import annotations

import math
import re

import pytest

from judged.scoring.peers.names import describe_parameters
from judged.scoring.peers.trec_eval import ALL, NICKNAMES, TrecEvalError, atof, atol, expand, roots

PREFERENCES = {name for name in ALL if name.startswith("prefs_") or name.endswith("avgjg")}


def printed(*specs: str) -> list[str]:
    return [line.name for line in expand(*specs)]


def code(*specs: str) -> int:
    with pytest.raises(TrecEvalError) as caught:
        [line.measure for line in expand(*specs)]
    return caught.value.code


def test_names_as_trec_evals_own_test_prints_them() -> None:
    """The options of its quicktest and the names in its file out.test.meas_params."""
    specs = [
        "iprec_at_recall..10,.20,.25,.75,.50", "P.5,7,3", "recall.20,2000", "Rprec_mult.5.0,0.2,0.35",
        "utility.2,-1,0,0", "11pt_avg..25,.5,.75", "ndcg.1=3,2=9,4=4.5", "ndcg_cut.10,20,23.4", "success.2,5,20",
    ]  # fmt: skip
    assert printed(*specs) == [
        "iprec_at_recall_0.10", "iprec_at_recall_0.20", "iprec_at_recall_0.25", "iprec_at_recall_0.50",
        "iprec_at_recall_0.75", "P_3", "P_5", "P_7", "recall_20", "recall_2000", "Rprec_mult_0.20",
        "Rprec_mult_0.35", "Rprec_mult_5.00", "utility_2,-1,0,0", "11pt_avg_.25,.5,.75", "ndcg_1=3,2=9,4=4.5",
        "ndcg_cut_10", "ndcg_cut_20", "ndcg_cut_23", "success_2", "success_5", "success_20",
    ]  # fmt: skip


def test_what_names_with_parameters_stand_for() -> None:
    specs = ["ndcg.1=3,2=9,4=4.5", "utility.2,-1,.5,0", "set_F.0.25", "11pt_avg..25,.5,.75", "rbp.p=0.8", "rbp_resid"]
    assert [str(line.measure) for line in expand(*specs, collection=1000)] == [
        "Utility(a=2,c=0.5,n=1000)", "AP11(points={0.25,0.5,0.75})", "nDCG(gain={1:3,2:9,4:4.5})", "SetF(beta=0.5)",
        "RBP(p=0.8,gain=graded,max=topic)", "RBPResidual(p=0.9)",
    ]  # fmt: skip


def test_the_level_goes_to_the_measures_that_know_one() -> None:
    lines = expand("map", "ndcg", "num_ret", "P.5", "rbp", "unj.5", level=2)
    assert [str(line.measure) for line in lines] == [
        "NumRet", "AP(rel=2)", "P(rel=2)@5", "nDCG", "RBP(p=0.9,gain=graded,max=topic)", "Unjudged@5",
    ]  # fmt: skip


def test_the_old_dialect_rounds_recall_up_and_lacks_what_is_new() -> None:
    assert [str(line.measure) for line in expand("iprec_at_recall.0.1", "11pt_avg", dialect="trec_eval-9")] == [
        "IPrec(rounding=up)@0.1",
        "AP11(rounding=up)",
    ]
    assert set(roots("all_trec")) - set(roots("all_trec", "trec_eval-9")) == {"rbp", "rbp_resid", "unj"}
    for name in ("rbp", "dcg", "ideal_dcg", "unj.5"):
        with pytest.raises(TrecEvalError, match="no measure"):
            roots(name, "trec_eval-9")


@pytest.mark.parametrize(
    ("specs", "names"),
    [
        (["P.5", "P.10"], ["P_5"]),
        (["P", "P.10"], ["P_10"]),
        (["P.10", "P"], ["P_10"]),
        (["set_F.2", "set_F.1", "recip_rank"], ["recip_rank", "set_F_2"]),
        (["recip_rank.7"], ["recip_rank"]),
        (["P.10,5"], ["P_5", "P_10"]),
        (["success.2.9,1x"], ["success_1", "success_2"]),
        (["relstring.5"], ["relstring_5"]),
        (["Rprec_mult.123456"], ["Rprec_mult_123456.0"]),  # nine characters hold no more
        (["gm_map", "runid", "num_q"], ["runid", "num_q", "gm_map"]),
    ],
)
def test_the_first_parameters_count(specs: list[str], names: list[str]) -> None:
    assert printed(*specs) == names


def test_parameters_of_a_nickname_are_ignored() -> None:
    assert printed("official.5") == printed("official")
    assert printed("official", "P.7")[-1] == "P_7"


def test_nicknames() -> None:
    assert len(printed("official")) == 30
    assert len(printed("all_trec")) == 100
    assert set(NICKNAMES["all_trec"]) == {*ALL} - PREFERENCES - {"yaap", "dcg", "ideal_dcg"}
    assert {name for names in NICKNAMES.values() for name in names} <= {*ALL}
    assert set(NICKNAMES["all_prefs"]) | set(NICKNAMES["qrels_jg"]) == PREFERENCES | {"runid", "num_q"}
    assert roots("prefs") == ("runid", "num_q", "prefs_num_prefs_poss", "prefs_num_prefs_ful",
                              "prefs_num_prefs_ful_ret", "prefs_simp", "prefs_pair", "prefs_avgjg")  # fmt: skip


def test_kinds_and_places() -> None:
    lines = {line.root: line for line in expand(*ALL)}
    assert {name for name, line in lines.items() if line.kind == "integer"} == {
        "num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret", "prefs_num_prefs_poss",
        "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret",
    }  # fmt: skip
    assert {name for name, line in lines.items() if line.summary_only} == {"runid", "num_q", "gm_map", "gm_bpref"}
    assert [name for name, line in lines.items() if line.scope == "topics"] == ["relstring"]
    assert list(lines) == list(ALL)


@pytest.mark.parametrize("spec", ["nDCG", "P_5", "P.", "official.", "", ".5", "MAP", "ndcg_p"])
def test_no_such_measure(spec: str) -> None:
    assert code(spec) == 1


@pytest.mark.parametrize(
    ("spec", "fix"),
    [
        ("P_10", "write P.10"),
        ("p_5,10", "write P.5,10"),
        ("ndcg_cut_10", "write ndcg_cut.10"),
        ("ndcg_10", "write ndcg_cut.10"),
        ("NDCG@10", "write ndcg_cut.10"),
        ("map_10", "write map_cut.10"),
        ("recip_rank_10", "write recip_rank, which takes no parameters"),
        ("set_F_0.5", "write set_F.0.5"),
        ("ndcg_1=3,2=9", "write ndcg.1=3,2=9"),
        ("rbp_p=0.8", "write rbp.p=0.8"),
        ("MAP", "did you mean map?"),
        ("AP", "did you mean map?"),
        ("MRR", "did you mean recip_rank?"),
        ("precision", "did you mean P?"),
        ("mpa", "did you mean map?"),
        ("oficial", "did you mean official?"),
        ("P@10", "write P.10"),
        ("R@100", "write recall.100"),
        ("RR@10", "use 'judged evaluate -m RR@10'; trec_eval does not compute RR@10"),
        ("ERR@10", "use 'judged evaluate -m \"ERR@10\"'; trec_eval does not compute ERR@10"),
        ("P.", "write P, or add cutoffs: P.5,10"),
        ("map.", "write map"),
        ("official.", "write official"),
    ],
)
def test_what_to_write_instead(spec: str, fix: str) -> None:
    with pytest.raises(TrecEvalError) as caught:
        roots(spec)
    assert str(caught.value) == f"there is no measure {spec!r}. Fix: {fix}"


def test_for_other_names_the_measures_are_listed_in_one_line() -> None:
    with pytest.raises(TrecEvalError) as caught:
        roots("xyzzyx")
    message = str(caught.value)
    assert message.startswith("there is no measure 'xyzzyx'. Fix: write one of num_ret num_rel num_rel_ret map gm_map ")
    assert len(message) < 420
    assert "\n" not in message
    with pytest.raises(TrecEvalError, match=r"'unj.5'. Fix: unj is not in trec_eval 9: omit --dialect trec_eval-9"):
        roots("unj.5", "trec_eval-9")


@pytest.mark.parametrize("spec", [*ALL, *NICKNAMES])
def test_what_is_written_instead_exists(spec: str) -> None:
    """Whatever the case, a name is found again; and the form of its parameters is one that is read."""
    turned = spec.swapcase()
    with pytest.raises(TrecEvalError) as caught:
        roots(turned)
    assert str(caught.value).endswith(f"did you mean {spec}?")
    for example in re.findall(rf"{spec}\.\S+", describe_parameters(spec)):
        assert [line.measure for line in expand(example)]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rbp.0.8", "rbp.0.8: the parameters must be pairs of the form NAME=VALUE. Fix: write rbp.p=0.8"),
        (
            "rbp_resid..5",
            "rbp_resid..5: the parameters must be pairs of the form NAME=VALUE. Fix: write rbp_resid.p=.5",
        ),
        (
            "ndcg.10",
            (
                "ndcg.10: the parameters must be pairs of the form NAME=VALUE. Fix: write ndcg.1=3,2=9,"
                " or ndcg_cut.10 for a cutoff"
            ),
        ),
        ("utility.1,-1", "utility takes 4 coefficients, got 2. Fix: write utility.1,-1,0,0"),
    ],
)
def test_parameters_that_are_no_pairs(spec: str, message: str) -> None:
    with pytest.raises(TrecEvalError) as caught:
        expand(spec)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "spec",
    ["P.0", "P.-5", "P.x", "P.5,5", "P.5,5.9", "Rprec_mult.1,1.0", "ndcg.1", "ndcg.1=2,3", "ndcg.1=2=3", "ndcg.=",
     "ndcg.-1=1", "set_F.-1", "rbp.0.8", "rbp.p=2", "iprec_at_recall.2"],
)  # fmt: skip
def test_senseless_parameters(spec: str) -> None:
    if spec == "ndcg.=":  # one pair, with an empty level that is not a level
        assert printed(spec) == ["ndcg_="]
        return
    assert code(spec) == 2


@pytest.mark.parametrize("spec", ["utility.1", "utility.1,2,3,4,5"])
def test_the_number_of_coefficients_of_utility(spec: str) -> None:
    assert code(spec) == 4


def test_the_weight_of_set_f_is_the_square_of_beta() -> None:
    for weight in (0.25, 1.0, 4.0, 0.5, 2.0, 0.1, 3.0):
        beta = expand(f"set_F.{weight}")[0].parameters["beta"]
        assert math.isclose(beta * beta, weight, rel_tol=3e-16)


@pytest.mark.parametrize(
    ("text", "integer", "real"),
    [
        ("12abc", 12, 12.0),
        ("-3.9", -3, -3.9),
        ("+7", 7, 7.0),
        ("1e3", 1, 1000.0),
        ("0x10", 0, 16.0),
        (".5", 0, 0.5),
        ("5.", 5, 5.0),
        ("", 0, 0.0),
        ("\t 4", 4, 4.0),
        ("1,5", 1, 1.0),
        ("-inf", 0, -math.inf),
        ("1e999", 1, math.inf),
        ("99999999999999999999", 2**63 - 1, 1e20),
    ],
)
def test_numbers_as_c_reads_them(text: str, integer: int, real: float) -> None:
    """As atol and atof of glibc 2.36 read them."""
    assert (atol(text), atof(text)) == (integer, real)
