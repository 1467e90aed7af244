"""RAG end to end: what systems answered, what is known of it, and where the evidence went."""

from judged._lazily import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.pipelines.rag.checking": ("check_responses",),
        "judged.pipelines.rag.over_time": ("support_over_time",),
        "judged.pipelines.rag.queries": ("query_facts",),
        "judged.pipelines.rag.scoring": ("evaluate",),
        "judged.pipelines.rag.explaining": ("explain",),
        "judged.pipelines.rag.responses": ("Responses",),
        "judged.pipelines.rag.where_lost": ("waterfall",),
        "judged.pipelines.rag.waterfall_answer": ("Waterfall",),
    },
)
