# Written by tools/docs.py: names that `judged.online` exports and imports at first use.

from judged.online.ab_tests.abtest import abtest as abtest
from judged.online.ab_tests.planning import plan_abtest as plan_abtest
from judged.online.check import check_log as check_log
from judged.online.differences import difference as difference
from judged.online.estimation.online_metrics import online_metrics as online_metrics
from judged.online.facts.pages import FactSettings as FactSettings
from judged.online.findings import Account as Account
from judged.online.findings import LogFinding as LogFinding
from judged.online.interleaving_analysis.analysis import interleaving as interleaving
from judged.online.interleaving_analysis.planning import plan_interleaving as plan_interleaving
from judged.online.layout import OnlineEstimate as OnlineEstimate
from judged.online.log import InteractionLog as InteractionLog
from judged.online.log_overview import overview as overview
from judged.online.metrics import ONLINE_METRICS as ONLINE_METRICS
from judged.online.metrics import OnlineMetric as OnlineMetric
from judged.online.metrics import online_metric as online_metric
from judged.online.offline.agreement import preference_agreement as preference_agreement
from judged.online.offline.outcome_prediction import against_qrels as against_qrels
from judged.online.offline.preference_rules import click_preferences as click_preferences
from judged.online.query_lists import queries as queries
from judged.online.readers.draft import draft_mapping as draft_mapping
from judged.online.scores import OnlineScores as OnlineScores
from judged.online.search_funnel import funnel as funnel
from judged.online.series import over_time as over_time
from judged.online.storage import read_log as read_log
