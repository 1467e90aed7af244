"""The measures: one definition each, which serves Python, command line, pages and documentation.

The classes themselves stand in their own modules and are imported at their first use.
"""

from judged.measures.aggregates import Aggregate, aggregate, logarithms
from judged.measures.base import Entry, Measure, Properties, param
from judged.measures.grammar import condition_of, find, listed, parse, parse_many
from judged.measures.parameters import Parameter, spell
from judged.measures.registry import REGISTRY, measure

__all__ = [
    "REGISTRY",
    "Aggregate",
    "Entry",
    "Measure",
    "Parameter",
    "Properties",
    "aggregate",
    "condition_of",
    "find",
    "listed",
    "logarithms",
    "measure",
    "param",
    "parse",
    "parse_many",
    "spell",
]
