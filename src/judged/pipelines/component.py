"""Commands, pages, and engines for traces, answers, agents, and experiments."""

from judged.components import Command, Component, Page

_ENGINES = "judged.pipelines.experiments.engines"

COMPONENT = Component(
    needs=("labels",),
    commands={
        "Comparison": {
            "experiment": Command(
                "judged.pipelines.commands.experiment:experiment",
                "Run search engines in several configurations, and find the best one.",
            )
        },
        "Diagnosis": {
            "traces": Command(
                "judged.pipelines.commands.traces:traces",
                "Find the stage that loses documents, and explain the rank of a document.",
            )
        },
        "Answers": {
            "rag": Command(
                "judged.pipelines.commands.rag:rag", "Evaluate generated answers by content, citations, and support."
            ),
            "trajectories": Command(
                "judged.pipelines.commands.trajectories:trajectories",
                "Evaluate the searches and answers of agents.",
            ),
        },
    },
    engines={
        "sqlite": f"{_ENGINES}.databases:SqliteFts5",
        "bm25s": f"{_ENGINES}.libraries:Bm25s",
        "tantivy": f"{_ENGINES}.libraries:Tantivy",
        "postgresql": f"{_ENGINES}.databases:PostgreSql",
        "dense": f"{_ENGINES}.vectors:Dense",
        "voyager": f"{_ENGINES}.vectors:Voyager",
        "usearch": f"{_ENGINES}.vectors:Usearch",
        "function": f"{_ENGINES}.external:Function",
        "http": f"{_ENGINES}.external:Http",
    },
    writers={"traces": "judged.pipelines.traces.recorder:write_traces_of_runs"},
    sample={
        "traces.jsonl": "judged.pipelines.traces.recorder:write_sample_traces",
        "trajectories.jsonl": "judged.pipelines.trajectories.sample:write_sample_trajectories",
        "chat_log.jsonl": "judged.pipelines.trajectories.sample:write_sample_chat",
    },
    pages=(
        Page(
            "judged.pipelines.pages:traces_router",
            "/traces",
            "Traces",
            "Which stage of a pipeline loses relevant documents, and why is a document not shown?",
            {"where": "where", "rel": "rel"},
            "Diagnosis",
            "traces",
            "traces of a pipeline",
        ),
        Page(
            "judged.pipelines.pages:rag_router",
            "/rag",
            "Answers",
            "At which step is evidence for an answer lost, and what supports an answer?",
            {"where": "where"},
            "Diagnosis",
            "rag",
            "generated answers",
        ),
        Page(
            "judged.pipelines.agent_pages:router",
            "/agents",
            "Agents",
            "Where do agents lose evidence, and is their accuracy worth the effort?",
            {"where": "where", "rel": "rel"},
            "Diagnosis",
            "trajectories",
            "trajectories of an agent",
        ),
        Page(
            "judged.pipelines.pages:router",
            "/experiment",
            "Experiment",
            "Which configuration is best, at what cost, and how do other settings change a result list?",
            group="Quality",
            option="experiment",
            data="an experiment",
        ),
    ),
    files="judged.pipelines",
    recognizers={
        "trajectories": "judged.pipelines.trajectories.reading:recognize",
        "answers": "judged.pipelines.rag.recognition:recognize",
    },
    serve="judged.pipelines.commands.serve",
)
