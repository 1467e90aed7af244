"""RAG end to end: what systems answered, what is known of it, and where the evidence went."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.pipelines.rag.explaining": ("check_responses", "explain"),
        "judged.pipelines.rag.steps": ("support_over_time",),
        "judged.pipelines.rag.where_lost": ("query_facts", "waterfall"),
        "judged.pipelines.rag.scoring": ("evaluate",),
        "judged.pipelines.rag.responses": ("Responses",),
        "judged.pipelines.rag.waterfall_answer": ("Waterfall",),
    },
)
