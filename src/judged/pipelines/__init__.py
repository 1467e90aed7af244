"""Systems of several steps: traces of retrieval pipelines, RAG answers, and experiments that run engines.

Start reading in `judged.pipelines.traces.traces`, `judged.pipelines.rag.responses`, or
`judged.pipelines.experiments.plan`: what each takes.
"""
