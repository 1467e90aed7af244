# Written by tools/docs.py: what `judged.rag` exports; it is imported at its first use.

from judged.rag.checking import check_responses as check_responses
from judged.rag.explaining import explain as explain
from judged.rag.over_time import support_over_time as support_over_time
from judged.rag.queries import query_facts as query_facts
from judged.rag.responses import Responses as Responses
from judged.rag.scoring import evaluate as evaluate
from judged.rag.waterfall_answer import Waterfall as Waterfall
from judged.rag.where_lost import waterfall as waterfall
