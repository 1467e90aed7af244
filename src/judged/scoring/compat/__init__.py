"""Drop-in replacements for other tools, one module per tool."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(__name__, {"": ("ir_measures", "pytrec_eval", "ranx", "trec_eval")})
