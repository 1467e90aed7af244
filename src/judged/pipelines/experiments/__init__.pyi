# Written by tools/docs.py: names that `judged.pipelines.experiments` exports and imports at first use.

from judged.pipelines.experiments.answer import Conclusions as Conclusions
from judged.pipelines.experiments.conclusions import conclude as conclude
from judged.pipelines.experiments.configurations import Configuration as Configuration
from judged.pipelines.experiments.configurations import OmittedCombination as OmittedCombination
from judged.pipelines.experiments.engines.base import QueryRefusedError as QueryRefusedError
from judged.pipelines.experiments.pipelines import Candidate as Candidate
from judged.pipelines.experiments.plan import Plan as Plan
from judged.pipelines.experiments.results import RefusedQuery as RefusedQuery
from judged.pipelines.experiments.results import Results as Results
from judged.pipelines.experiments.results import load as load
from judged.pipelines.experiments.runner import run as run
from judged.pipelines.experiments.trial import QueryTrial as QueryTrial
from judged.pipelines.experiments.trial import TrialEngines as TrialEngines
