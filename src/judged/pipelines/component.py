"""Commands, pages, and engines for traces, answers, and experiments."""

from judged.components import Command, Component, Page

_ENGINES = "judged.pipelines.experiments.engines"

COMPONENT = Component(
    needs=("labels",),
    commands={
        "Comparison": {
            "experiment": Command(
                "judged.pipelines.commands.experiment:experiment",
                "Run search engines in several configurations, and say which is best.",
            )
        },
        "Diagnosis": {
            "traces": Command(
                "judged.pipelines.commands.traces:traces",
                "At which stage documents are lost, and why one stands where it stands.",
            )
        },
        "Answers": {"rag": Command("judged.pipelines.commands.rag:rag", "Answers: what they say, cite and rest on.")},
    },
    engines={
        "sqlite": f"{_ENGINES}.databases:SqliteFts5",
        "bm25s": f"{_ENGINES}.libraries:Bm25s",
        "tantivy": f"{_ENGINES}.libraries:Tantivy",
        "postgresql": f"{_ENGINES}.databases:PostgreSql",
        "dense": f"{_ENGINES}.libraries:Dense",
        "function": f"{_ENGINES}.external:Function",
        "http": f"{_ENGINES}.external:Http",
    },
    writers={"traces": "judged.pipelines.traces.recorder:write_traces_of_runs"},
    sample={"traces.jsonl": "judged.pipelines.traces.recorder:write_sample_traces"},
    pages=(
        Page(
            "judged.pipelines.pages:traces_router",
            "/traces",
            "Traces",
            "At which stage of a pipeline was it lost, and why is a document not shown?",
            {"where": "where", "rel": "rel"},
        ),
        Page(
            "judged.pipelines.pages:rag_router",
            "/rag",
            "Answers",
            "Where is evidence lost on its way into an answer, and what does an answer rest on?",
            {"where": "where"},
        ),
        Page(
            "judged.pipelines.pages:router",
            "/experiment",
            "Experiment",
            "Which configuration is best, at what cost, and what would others do to a query?",
        ),
    ),
    files="judged.pipelines",
    serve="judged.pipelines.commands.serve",
)
