"""How a score comes about, and what other tools report in its place."""

from judged.scoring.explanation.explain import Explanation, explain, explain_list
from judged.scoring.explanation.other_tools import ToolComparison, compare_tools
from judged.scoring.explanation.sheets import Line, Sheet

__all__ = ["Explanation", "Line", "Sheet", "ToolComparison", "compare_tools", "explain", "explain_list"]
