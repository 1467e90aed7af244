# Written by tools/docs.py: what `judged.rag` exports; it is imported at its first use.

from judged.rag.explaining import explain as explain
from judged.rag.responses import Responses as Responses
from judged.rag.scoring import evaluate as evaluate
