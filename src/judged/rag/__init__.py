"""RAG end to end: what systems answered, what is known of it, and where the evidence went."""

from judged._lazily import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.rag.checking": ("check_responses",),
        "judged.rag.over_time": ("support_over_time",),
        "judged.rag.queries": ("query_facts",),
        "judged.rag.scoring": ("evaluate",),
        "judged.rag.explaining": ("explain",),
        "judged.rag.responses": ("Responses",),
        "judged.rag.where_lost": ("waterfall",),
        "judged.rag.waterfall_answer": ("Waterfall",),
    },
)
