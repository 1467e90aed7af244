# Written by tools/docs.py: names that `judged.pipelines.rag` exports and imports at first use.

from judged.pipelines.rag.evidence_loss import query_facts as query_facts
from judged.pipelines.rag.evidence_loss import waterfall as waterfall
from judged.pipelines.rag.explaining import check_responses as check_responses
from judged.pipelines.rag.explaining import explain as explain
from judged.pipelines.rag.responses import Responses as Responses
from judged.pipelines.rag.scoring import evaluate as evaluate
from judged.pipelines.rag.steps import support_over_time as support_over_time
from judged.pipelines.rag.waterfall_answer import Waterfall as Waterfall
