"""The measures: one definition each, which serves Python, command line, pages and documentation."""

from judged.measures.accuracy import Accuracy
from judged.measures.ap import AP
from judged.measures.base import REGISTRY, Aggregate, Entry, Measure, Properties, measure, param
from judged.measures.bpref import Bpref
from judged.measures.counts import NumQ, NumRel, NumRelRet, NumRet
from judged.measures.dcg import CG, DCG
from judged.measures.f import F, SetF
from judged.measures.grammar import find, parse, parse_many
from judged.measures.ndcg import nDCG
from judged.measures.parameters import Parameter, spell
from judged.measures.precision import P, SetP
from judged.measures.recall import R, SetR
from judged.measures.rprec import Rprec
from judged.measures.rr import RR
from judged.measures.shares import JudgedShare, UnjudgedShare
from judged.measures.success import Success

__all__ = [
    "AP",
    "CG",
    "DCG",
    "REGISTRY",
    "RR",
    "Accuracy",
    "Aggregate",
    "Bpref",
    "Entry",
    "F",
    "JudgedShare",
    "Measure",
    "NumQ",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "Parameter",
    "Properties",
    "R",
    "Rprec",
    "SetF",
    "SetP",
    "SetR",
    "Success",
    "UnjudgedShare",
    "find",
    "measure",
    "nDCG",
    "param",
    "parse",
    "parse_many",
    "spell",
]
