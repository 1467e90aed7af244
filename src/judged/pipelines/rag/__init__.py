"""Evaluation of RAG: responses, their scores, explanations, and the steps at which evidence is lost."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.pipelines.rag.explaining": ("check_responses", "explain"),
        "judged.pipelines.rag.steps": ("support_over_time",),
        "judged.pipelines.rag.evidence_loss": ("query_facts", "waterfall"),
        "judged.pipelines.rag.scoring": ("evaluate",),
        "judged.pipelines.rag.responses": ("Responses",),
        "judged.pipelines.rag.waterfall_answer": ("Waterfall",),
    },
)
