"""The commands, calls, and names of other tools, computed by our engine: a module for each tool."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(__name__, {"": ("ir_measures", "pytrec_eval", "ranx", "trec_eval")})
