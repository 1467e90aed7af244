"""Use of judged inside other tools: pytest, experiment trackers, and sentence-transformers.

No module here is imported by ``import judged``, and none of these tools is a dependency.
"""
