"""Names of measures: names of other tools are accepted, and errors suggest a fix."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import judged
from judged import MeasureError
from judged.scoring.measures import parse, parse_many
from judged.scoring.measures.grammar import normalize_name
from judged.scoring.measures.registry import REGISTRY


@pytest.mark.parametrize(
    ("written", "name"),
    [
        # trec_eval
        ("map", "AP"),
        ("map_cut_100", "AP@100"),
        ("map_cut.100", "AP@100"),
        ("ndcg", "nDCG"),
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("recip_rank", "RR"),
        ("Rprec", "Rprec"),
        ("bpref", "Bpref"),
        ("P_10", "P@10"),
        ("P.10", "P@10"),
        ("recall_1000", "R@1000"),
        ("success_5", "Success@5"),
        ("set_P", "SetP"),
        ("set_recall", "SetR"),
        ("set_F", "SetF"),
        ("unj_10", "Unjudged@10"),
        ("num_ret", "NumRet"),
        ("num_rel", "NumRel"),
        ("num_rel_ret", "NumRelRet"),
        ("num_q", "NumQ"),
        ("gm_map", "GMAP"),
        ("gm_bpref", "GMBpref"),
        ("iprec_at_recall_0.10", "IPrec@0.1"),
        ("iprec_at_recall.1", "IPrec@1"),
        ("11pt_avg", "AP11"),
        ("hit@10", "Success@10"),
        ("RR@10(rel=2)", "RR(rel=2)@10"),
        ("RR@10 (rel=2)", "RR(rel=2)@10"),
        ("nDCG @ 10 ( gain={1:1,2:5}, discount=ln )", "nDCG(gain={1:1,2:5},discount=ln)@10"),
        ("prec@5 where kind in ('a, b', 'c') and words < 5", "P@5 where kind in ('a, b', 'c') and words < 5"),
        ("Rprec_mult_0.20", "RprecMult@0.2"),
        ("Rprec_mult.1.4", "RprecMult@1.4"),
        ("utility", "Utility"),
        ("binG", "BinG"),
        ("G", "G"),
        ("ndcg_rel", "nDCGrel"),
        ("Rndcg", "RnDCG"),
        ("ideal_dcg", "IdealDCG"),
        ("relative_P_10", "RelP@10"),
        ("R_cap@10", "RelP@10"),
        ("set_relative_P", "SetRelP"),
        ("set_map", "SetAP"),
        ("num_nonrel_judged_ret", "NumNonrelRet"),
        ("yaap", "Yaap"),
        ("rbp(p=0.8)", "RBP(p=0.8)"),
        ("rbp_resid", "RBPResidual(p=0.9)"),
        ("iprec_at_recall.0.25", "IPrec@0.25"),
        ("infAP", "InfAP"),
        # ir_measures
        ("AP", "AP"),
        ("MAP", "AP"),
        ("AP(rel=2)", "AP(rel=2)"),
        ("AP(rel=2)@1000", "AP(rel=2)@1000"),
        ("nDCG@10", "nDCG@10"),
        ("NDCG@10", "nDCG@10"),
        ("P@5", "P@5"),
        ("Precision@5", "P@5"),
        ("Recall@100", "R@100"),
        ("R(rel=3)@100", "R(rel=3)@100"),
        ("MRR", "RR"),
        ("RR@10", "RR@10"),
        ("Rprec(rel=2)", "Rprec(rel=2)"),
        ("Bpref(rel=2)", "Bpref(rel=2)"),
        ("Success@1", "Success@1"),
        ("Judged@10", "Judged@10"),
        ("IPrec@0.1", "IPrec@0.1"),
        ("SetF(rel=2, beta=0.5)", "SetF(beta=0.5,rel=2)"),
        ("NumRet", "NumRet"),
        ("Accuracy(n=1000)", "Accuracy(n=1000)"),
        ("nDCG(dcg='log2')@10", "nDCG@10"),
        ("nDCG(dcg='exp-log2')@10", "nDCG(gain=exp2)@10"),
        ('nDCG(dcg="exp-log2", judged_only=True) @ 10', "nDCG(gain=exp2,judged_only=true)@10"),
        ("nDCG(gains={0:0, 1:1, 2:5})@10", "nDCG(gain={0:0,1:1,2:5})@10"),
        ("AP(judged_only=True)", "AP(judged_only=true)"),
        ("P(cutoff=10, rel=2)", "P(rel=2)@10"),
        ("IPrec(recall=0.1,rel=2)", "IPrec(rel=2)@0.1"),
        ("RBP(p=0.8,rel=1)", "RBP(p=0.8)"),
        ("infAP(rel=2)", "InfAP(rel=2)"),
        ("SetP(relative=True)", "SetRelP"),
        ("SetP(relative=False,rel=2)", "SetP(rel=2)"),
        ("SetRelP", "SetRelP"),
        ("SetAP", "SetAP"),
        ("SetF(beta=2)", "SetF(beta=2)"),
        ("NumRet(rel=2)", "NumRelRet(rel=2)"),
        ("ERR(max=4)@20", "ERR(max=4)@20"),
        ("BPM(T=2,max_rel=3)@10", "BPM(T=2,max=3)@10"),
        ("BPM(T=2,min_rel=1,max_rel=3)@10", "BPM(T=2,max=3,min=1)@10"),
        ("SDCG(max_rel=3,dcg='log2')@10", "SDCG(max=3)@10"),
        ("INST(T=1.0,max_rel=3)", "INST(max=3)"),
        ("INSQ(max_rel=3)", "INSQ(max=3)"),
        ("NERR8(max_rel=3)@10", "NERR8(max=3)@10"),
        ("NERR11(T=2,max_rel=3)", "NERR11(T=2,max=3)"),
        ("Compat(p=0.95)", "Compat"),
        ("Compat(p=0.9,normalize=False)", "Compat(p=0.9,normalize=false)"),
        ("alpha_nDCG(alpha=0.5)@10", "AlphanDCG@10"),
        ("\u03b1_nDCG(alpha=0.9)@10", "AlphanDCG(alpha=0.9)@10"),
        ("alpha_DCG@10", "AlphaDCG@10"),
        ("ERR_IA@10", "ERRIA@10"),
        ("nERR_IA(rel=2)@10", "nERRIA(rel=2)@10"),
        ("AP_IA", "APIA"),
        ("MAP_IA", "APIA"),
        ("P_IA@5", "PIA@5"),
        ("NRBP(alpha=0.3,beta=0.8)", "NRBP(alpha=0.3,beta=0.8)"),
        ("nNRBP", "nNRBP"),
        ("StRecall@5", "StRecall@5"),
        # ndeval
        ("alpha-nDCG@20", "AlphanDCG@20"),
        ("ERR-IA@20", "ERRIA@20"),
        ("MAP-IA", "APIA"),
        ("strec@20", "StRecall@20"),
        # ranx
        ("hits@10", "NumRelRet@10"),
        ("precision@10", "P@10"),
        ("recall@100", "R@100"),
        ("f1@10", "F@10"),
        ("F1@10", "F@10"),
        ("mrr@10", "RR@10"),
        ("mrr@10-l2", "RR(rel=2)@10"),
        ("map-l3", "AP(rel=3)"),
        ("hit_rate@5", "Success@5"),
        ("r-precision", "Rprec"),
        ("r-precision-l2", "Rprec(rel=2)"),
        ("ndcg_burges@10", "nDCG(gain=exp2)@10"),
        ("dcg@5", "DCG@5"),
        ("dcg_burges@5", "DCG(gain=exp2)@5"),
        ("R-Prec", "Rprec"),
        # ours, in any spacing and case
        (" nDCG( gain = exp2 , discount=ln ) @ 10 ", "nDCG(gain=exp2,discount=ln)@10"),
        ("nDCG(gain={3:7, 1:1,2:2.5})@10", "nDCG(gain={1:1,2:2.5,3:7})@10"),
        ("nDCG(gain={-1:0.5})", "nDCG(gain={-1:0.5})"),
        ("nDCG(gain=linear,base=2,judged_only=false)", "nDCG"),
        ("AP(judged_only=TRUE,undefined=skip)", "AP(judged_only=true,undefined=skip)"),
        ("AP(undefined=1e0)", "AP(undefined=1)"),
        ("RR(rel=0.5)@3", "RR(rel=0.5)@3"),
        ("F(beta=0)@3", "F(beta=0)@3"),
        ("AP(norm=cutoff)@10", "AP(norm=cutoff)@10"),
        ("AP()", "AP"),
        ("IPrec@5e-324", "IPrec@5e-324"),
        ("IPrec(rounding=up,rel=2)@.25", "IPrec(rounding=up,rel=2)@0.25"),
        ("AP11(points={1, 0.5,.25})", "AP11(points={0.25,0.5,1})"),
        ("AP11(points={0,.1,.2,.3,.4,.5,.6,.7,.8,.9,1})", "AP11"),
        ("RBP(p=0.8,gain=graded,max=4)@10", "RBP(p=0.8,gain=graded,max=4)@10"),
        ("RBP(max=topic, gain={1:1,2:3}, p=.5)", "RBP(p=0.5,gain={1:1,2:3},max=topic)"),
        ("Utility(b=-0.5,c=-1e-3)", "Utility(b=-0.5,c=-0.001)"),
        ("AP(cutoff=10)", "AP@10"),
    ],
)
def test_names(written: str, name: str) -> None:
    assert str(parse(written)) == name
    assert parse(name) == parse(written)


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("P@5,10", ["P@5", "P@10"]),
        ("IPrec@0,0.1,1", ["IPrec@0", "IPrec@0.1", "IPrec@1"]),
        ("iprec_at_recall.0.1,0.2", ["IPrec@0.1", "IPrec@0.2"]),
        ("P@5, 10 ,20", ["P@5", "P@10", "P@20"]),
        ("IPrec@0.1,0.2", ["IPrec@0.1", "IPrec@0.2"]),
        ("iprec_at_recall.0,0.5", ["IPrec@0", "IPrec@0.5"]),
        ("alpha-nDCG@5,10", ["AlphanDCG@5", "AlphanDCG@10"]),
        ("P.5,10", ["P@5", "P@10"]),
        ("ndcg_cut.5,10,20", ["nDCG@5", "nDCG@10", "nDCG@20"]),
        ("nDCG@1..3", ["nDCG@1", "nDCG@2", "nDCG@3"]),
        ("nDCG@7..7", ["nDCG@7"]),
        ("R(rel=2)@1..2,10", ["R(rel=2)@1", "R(rel=2)@2", "R(rel=2)@10"]),
        ("mrr@5,10-l2", ["RR(rel=2)@5", "RR(rel=2)@10"]),
        ("AP", ["AP"]),
    ],
)
def test_series(written: str, names: list[str]) -> None:
    assert list(map(str, parse_many(written))) == names


def test_a_class_and_a_measure_stand_for_themselves() -> None:
    assert parse(judged.nDCG) == judged.nDCG()
    precision = judged.P(cutoff=5)
    assert parse(precision) is precision
    assert parse_many(judged.AP) == (judged.AP(),)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "'' is not a measure's name. Fix: write NAME, NAME@10 or NAME(parameter=value)@10"),
        ("@10", "is not a measure's name. Fix: write NAME"),
        ("nDCG@", "is not a measure's name. Fix: write NAME"),
        ("nDCG@-1", "is not a measure's name. Fix: write NAME"),
        ("nDCG(gain=exp2@10", "is not a measure's name. Fix: write NAME"),
        ("ndgc@10", "there is no measure 'ndgc'. Fix: did you mean nDCG"),
        ("percision@10", "there is no measure 'percision'. Fix: did you mean P"),
        ("xyzzy", "there is no measure 'xyzzy'. Fix: 'judged measures' lists all"),
        ("P", "P requires `cutoff`. Fix: write P@10"),
        ("Recall", "R requires `cutoff`. Fix: write R@10"),
        ("Accuracy", "Accuracy requires `n`. Fix: write Accuracy(n=...)"),
        ("Rprec@10", "Rprec takes no cutoff. Fix: write Rprec"),
        ("SetF@4", "SetF takes no cutoff. Fix: write SetF"),
        ("AP(level=2)", "AP has no parameter 'level'. Fix: use one of cutoff, judged_only, norm, rel, undefined"),
        ("NumQ(rel=2)", "NumQ has no parameter 'rel'. Fix: use one of none"),
        ("ndcg@10-l2", "nDCG has no parameter 'rel'. Fix: use one of"),
        ("AP(2)", r"cannot parse '2'. Fix: write parameter=value, separated by commas"),
        ("AP(rel=)", "cannot parse 'rel='. Fix: write parameter=value"),
        ("AP(rel=2 norm=cutoff)", "AP: rel='2 norm=cutoff' is not allowed. Fix: use a number"),
        ("P@0", "P: cutoff=0 is not allowed. Fix: use an integer of at least 1"),
        ("ERR@20", "ERR requires `max`. Fix: write ERR(max=4)@20, with the highest grade of your scale"),
        ("err", "ERR requires `max`. Fix: write ERR(max=4), with the highest grade"),
        ("RBP", "RBP requires `p`. Fix: write RBP(p=0.8): the default is 0.8 in ir_measures"),
        (
            "Accuracy@10",
            "Accuracy requires `n`. Fix: write Accuracy(n=...)@10 with the size of the collection; the Acc",
        ),
        ("nDCG(dcg='exp')", "nDCG: dcg='exp' is not allowed. Fix: use one of log2, exp-log2"),
        ("SetP(relative=maybe)", "SetP: relative='maybe' is not allowed. Fix: use one of true, false"),
        ("AP(dcg=log2)", "AP has no parameter 'dcg'. Fix: use one of"),
        ("AP(max_rel=3)", "AP has no parameter 'max_rel'. Fix: use one of"),
        ("BPM(T=2)@10", "BPM requires `max`. Fix: write BPM(max=...)"),
        ("alpha_ndgc@10", "there is no measure 'alpha_ndgc'. Fix: did you mean AlphanDCG"),
        ("P(cutoff=2.5)", "P: cutoff='2.5' is not allowed. Fix: use an integer of at least 1"),
        ("P@2.5", "'2.5' is not a cutoff. Fix: write @10, @5,10 or @1..10"),
        ("P@5..1", "'5..1' must be ascending. Fix: write the smaller cutoff first"),
        ("P@5,,6", "'' is not a cutoff. Fix: write @10"),
        ("AP(rel=-1)", "AP: rel='-1' is not allowed. Fix: use a number of at least 0"),
        ("AP(rel=nan)", "AP: rel='nan' is not allowed. Fix: use a number"),
        ("AP(rel=inf)", "AP: rel='inf' is not allowed. Fix: use a number"),
        ("AP(rel=high)", "AP: rel='high' is not allowed. Fix: use a number"),
        ("AP(norm=all)", "AP: norm='all' is not allowed. Fix: use one of relevant, cutoff, returned"),
        ("AP(judged_only=maybe)", "AP: judged_only='maybe' is not allowed. Fix: use true or false"),
        ("AP(undefined=never)", "AP: undefined='never' is not allowed. Fix: use a number, or the word skip"),
        ("nDCG(gain=log)", "nDCG: gain='log' is not allowed. Fix: use linear, exp2, or a table of gains"),
        ("nDCG(gain={})", "cannot parse {}. Fix: write a table such as {1:1,2:3}"),
        ("nDCG(gain={1,2:3})", "cannot parse {1,2:3}. Fix: write a table such as {1:1,2:3}"),
        (
            "nDCG(gain={1})",
            "nDCG: gain=['1'] is not allowed. Fix: use linear, exp2, or a table of gains such as {1:1,2:3}",
        ),
        ("nDCG(gain={12,34})", "nDCG: gain=['12', '34'] is not allowed. Fix: use linear, exp2, or a table of gains"),
        ("nDCG(gain={1:x})", "nDCG: gain={1.0: 'x'} is not allowed. Fix: use a table of finite gains"),
        ("nDCG(gain={1:inf})", "is not allowed. Fix: use a table of finite gains such as {1:1,2:3}"),
        ("nDCG(discount=sqrt)", "nDCG: discount='sqrt' is not allowed. Fix: use one of log2, ln, log10, original"),
        ("nDCG(discount=original,base=1)", "nDCG: base='1' is not allowed. Fix: use a number of at least 1"),
        ("IPrec", "IPrec requires `recall`. Fix: write IPrec@..."),
        ("IPrec@1.1", "IPrec: recall='1.1' is not allowed. Fix: use a number from 0 to 1"),
        ("AP11(points={0.5,2})", "AP11: points=['0.5', '2'] is not allowed. Fix: use a number from 0 to 1"),
        ("AP11(points={0.5,.5})", "is not allowed. Fix: use distinct numbers from 0 to 1, such as {0,1}"),
        ("AP11(points={1:2})", "is not allowed. Fix: use distinct numbers from 0 to 1, such as {0,1}"),
        ("AP11(points=all)", "AP11: points='all' is not allowed. Fix: use distinct numbers from 0 to 1"),
        ("RBP", "RBP requires `p`. Fix: write RBP(p=0.8)"),
        ("rbp@10", "RBP requires `p`. Fix: write RBP(p=0.8)@10"),
        ("RBP(p=1.5)", "RBP: p='1.5' is not allowed. Fix: use a number from 0 to 1"),
        (
            "RBP(p=0.8,gain=graded)",
            "RBP: gain=graded requires max, the highest gain of the scale. Fix: add max=4, or max=t",
        ),
        ("RBP(p=0.8,max=4)", "RBP: max=4 requires graded gains. Fix: add gain=graded"),
        ("RBP(p=0.8,gain=graded,max=4,rel=2)", "RBP: rel has no effect with gain=graded. Fix: omit rel=2"),
        (
            "RBP(p=0.8,gain=linear)",
            "gain='linear' is not allowed. Fix: use binary, graded, or a table of finite gains",
        ),
        ("RBP(p=0.8,gain=graded,max=0)", "RBP: max='0' is not allowed. Fix: use a number above 0, or the word topic"),
        ("Accuracy(n=0)", r"Accuracy: n='0' is not allowed. Fix: use an integer of at least 1"),
        ("P@5,10", r"one measure is required, got 2 (P@5, P@10). Fix: use one name and one cutoff"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(written: str, message: str) -> None:
    with pytest.raises(MeasureError) as caught:
        parse(written)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [{"cutoff": 0}, {"cutoff": -1}, {"cutoff": 2.5}, {"cutoff": True}, {"cutoff": "x"}, {"rel": None}, {"rel": True},
     {"gain": {}}, {"gain": {1: float("nan")}}, {"gain": 3}, {"judged_only": 2}, {"undefined": None}, {"base": 1}],
)  # fmt: skip
def test_wrong_values_are_refused_in_python_too(changes: dict[str, object]) -> None:
    cls = judged.nDCG if changes.keys() & {"gain", "base"} else judged.AP
    with pytest.raises(MeasureError, match=r"is not allowed\. Fix: "):
        cls(**changes)


def test_an_unbounded_series_is_refused() -> None:
    with pytest.raises(MeasureError, match="Fix: "):
        parse_many("P@1..1000000000")


def test_no_two_measures_are_written_alike() -> None:
    """Case, and hyphens for underscores, make no difference in a name."""
    meant: dict[str, set[str]] = {}
    for entry in REGISTRY.values():
        for name in (entry.name, *entry.aliases):
            meant.setdefault(normalize_name(name), set()).add(entry.name)
    assert not {name: several for name, several in meant.items() if len(several) > 1}


def test_the_number_behind_set_f_is_beta_squared_and_no_cutoff() -> None:
    assert str(parse("set_F.0.25")) == "SetF(beta=0.5)"
    assert str(parse("set_F_4")) == "SetF(beta=2)"
    with pytest.raises(MeasureError, match="SetF takes no cutoff"):
        parse("SetF@5")


@pytest.mark.parametrize("wrong", [None, 5, b"P@5", ["P@5"], int, object])
def test_what_is_no_name_is_refused(wrong: Any) -> None:
    with pytest.raises(MeasureError, match=r"is not a measure\. Fix: use a name"):
        parse(wrong)


def test_numbers_too_long_for_a_cutoff_are_refused() -> None:
    for digits in (17, 400, 5000):
        with pytest.raises(MeasureError, match=r"is not a cutoff|integer"):
            parse("P@" + "9" * digits)
    for name in ("AlphaDCG@10000000000", "INST(max=1,depth=10000000000)"):
        with pytest.raises(MeasureError, match="an integer from 1 to 1000000"):
            parse(name)


def test_a_grade_has_one_gain() -> None:
    with pytest.raises(MeasureError, match="has a duplicate grade"):
        parse("nDCG(gain={1:2,1.0:3})")


def test_parameters_are_named_and_shown() -> None:
    with pytest.raises(MeasureError, match=r"ERR: parameters must be passed by name\. Fix: use cutoff=, max="):
        judged.ERR(4)
    assert str(inspect.signature(judged.P)) == "(*, cutoff, rel=1.0, judged_only=False, undefined=0.0)"


@pytest.mark.parametrize("text", ["RBP(p=1)", "RBP(p=1.0)@10", "RBP(p=0_5)", "AP(rel=1_0)", "DCG(gain={1_0:1})"])
def test_a_parameter_for_which_every_ranking_scores_the_same_and_numbers_of_another_notation_are_refused(
    text: str,
) -> None:
    with pytest.raises(MeasureError, match="Fix"):
        parse(text)


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("nDCG@10,MRR@10", ["nDCG@10", "RR@10"]),
        ("nDCG@10 RR@10", ["nDCG@10", "RR@10"]),
        (" P@5,10 , MAP;recall@100 ", ["P@5", "P@10", "AP", "R@100"]),
        ("IPrec@0.1,1e-2 SetF(beta=0.5,rel=2)", ["IPrec@0.1", "IPrec@0.01", "SetF(beta=0.5,rel=2)"]),
        ("P@5 AP where kind == 'a, b'", ["P@5 where kind == 'a, b'", "AP where kind == 'a, b'"]),
    ],
)
def test_several_names_in_one_text(written: str, names: list[str]) -> None:
    assert [str(measure) for measure in parse_many(written)] == names
    assert [str(measure) for measure in judged.scoring.evaluation.measures_of([written, "Bpref"])] == [*names, "Bpref"]
    with pytest.raises(MeasureError, match="one measure is required"):
        parse(written)


def test_a_cutoff_may_follow_the_other_parameters() -> None:
    assert judged.P(rel=2) @ 5 == judged.P(cutoff=5, rel=2) == parse("P(rel=2)@5")
    with pytest.raises(MeasureError, match=r"P\(rel=2\) requires `cutoff`\. Fix: write P\(rel=2\)@10"):
        judged.P(rel=2).of_list([1])
    for waiting in (judged.P(rel=2), "P(rel=2)"):
        with pytest.raises(MeasureError, match=r"Fix: write P\(rel=2\)@10"):
            parse_many(waiting)
    with pytest.raises(MeasureError, match="Fix: write P@10"):
        judged.P()


def test_a_condition_is_part_of_the_measure() -> None:
    measure = parse("P@5 where kind == 'law'")
    assert measure != judged.P @ 5
    assert measure.without_condition == judged.P @ 5
    assert measure == (judged.P @ 5).replace(where=" kind == 'law' ") == parse(str(measure))
    assert measure @ 10 == parse("P@10 where kind == 'law'")
    with pytest.raises(MeasureError, match="requires attributes"):
        measure.of_list([1])
    with pytest.raises(MeasureError, match="has no condition after"):
        parse("P@5 where ")
    with pytest.raises(judged.InputError, match="is not an expression"):
        parse("P@5 where kind ==")
