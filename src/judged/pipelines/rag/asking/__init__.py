"""Models that fill tables of answers: nuggets, and verdicts on answers, sentences and citations."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.pipelines.rag.asking.filling": (
            "Filled",
            "fill",
            "Filling",
            "prepare_table",
        ),
    },
)
