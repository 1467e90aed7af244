"""What can be chosen on the page of the evaluator, and the lists to begin with."""

from __future__ import annotations

CONTROLS: dict[str, list[dict[str, str]]] = {
    "gain": [
        {"value": "linear", "label": "linear: the grade itself"},
        {"value": "exp2", "label": "exp2: 2^grade - 1"},
    ],
    "discount": [
        {"value": "log2", "label": "log2(rank + 1)"},
        {"value": "ln", "label": "ln(rank + 1)"},
        {"value": "original", "label": "original: max(1, log_b(rank))"},
    ],
    "examples": [
        {"name": "Five results, graded 0 to 3", "query": "list=3,0,2,1,0&k=5&gain=exp2"},
        {"name": "A relevant document was missed: AP 0.567, not 0.756", "query": "list=1,0,1,0,1&missing=1&k=5"},
        {
            "name": "The original DCG paper",
            "query": "list=3,2,3,0,0,1,2,2,3,0&k=10&discount=original",
        },
        {"name": "The best documents were not found", "query": "list=0,4&missing=4&k=2"},
        {
            "name": "Two orders of the same documents",
            "query": "list=0:a,3:b,1:c,2:d,0:e&other=3:b,2:d,1:c,0:a,0:e&k=5&gain=exp2",
        },
        {"name": "Documents without a judgment", "query": "list=2,-,0,1,-,-,1&missing=2,1&k=5"},
    ],
}
"""Choices with the value that the address has and the label; examples with a name and their address's query."""
