"""What pytest leaves alone: the doctests of a module whose library is not installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("ir_measures") else ["src/judged/compat/ir_measures.py"]
