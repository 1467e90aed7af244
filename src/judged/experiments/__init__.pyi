# Written by tools/docs.py: what `judged.experiments` exports; it is imported at its first use.

from judged.experiments.answer import Conclusions as Conclusions
from judged.experiments.conclusions import conclude as conclude
from judged.experiments.configurations import Configuration as Configuration
from judged.experiments.configurations import LeftOut as LeftOut
from judged.experiments.engines.base import QueryRefusedError as QueryRefusedError
from judged.experiments.pipelines import Candidate as Candidate
from judged.experiments.plan import Plan as Plan
from judged.experiments.results import Refused as Refused
from judged.experiments.results import Results as Results
from judged.experiments.results import load as load
from judged.experiments.runner import run as run
from judged.experiments.trial import Trial as Trial
from judged.experiments.trial import Trials as Trials
