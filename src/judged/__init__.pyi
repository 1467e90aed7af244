# What `judged` exports, for type checkers: at run time these names are imported when they are first used.

from judged.data import (
    Qrels as Qrels,
)
from judged.data import (
    Run as Run,
)
from judged.data.check import (
    check_qrels as check_qrels,
)
from judged.data.check import (
    check_run as check_run,
)
from judged.data.findings import (
    Finding as Finding,
)
from judged.data.topics import (
    Topics as Topics,
)
from judged.data.write import (
    write_qrels as write_qrels,
)
from judged.data.write import (
    write_run as write_run,
)
from judged.errors import (
    InputError as InputError,
)
from judged.errors import (
    JudgedError as JudgedError,
)
from judged.errors import (
    JudgedWarning as JudgedWarning,
)
from judged.errors import (
    MeasureError as MeasureError,
)
from judged.errors import (
    MissingExtraError as MissingExtraError,
)
from judged.evaluation import (
    Estimate as Estimate,
)
from judged.evaluation import (
    Scores as Scores,
)
from judged.evaluation import (
    evaluate as evaluate,
)
from judged.evaluation import (
    runs_of as runs_of,
)
from judged.judging import (
    Judged as Judged,
)
from judged.judging import (
    Ranking as Ranking,
)
from judged.judging import (
    judge as judge,
)
from judged.judging import (
    judge_list as judge_list,
)
from judged.measures import (
    AP as AP,
)
from judged.measures import (
    CG as CG,
)
from judged.measures import (
    DCG as DCG,
)
from judged.measures import (
    RR as RR,
)
from judged.measures import (
    Accuracy as Accuracy,
)
from judged.measures import (
    Bpref as Bpref,
)
from judged.measures import (
    F as F,
)
from judged.measures import (
    JudgedShare as JudgedShare,
)
from judged.measures import (
    Measure as Measure,
)
from judged.measures import (
    NumQ as NumQ,
)
from judged.measures import (
    NumRel as NumRel,
)
from judged.measures import (
    NumRelRet as NumRelRet,
)
from judged.measures import (
    NumRet as NumRet,
)
from judged.measures import (
    P as P,
)
from judged.measures import (
    Parameter as Parameter,
)
from judged.measures import (
    Properties as Properties,
)
from judged.measures import (
    R as R,
)
from judged.measures import (
    Rprec as Rprec,
)
from judged.measures import (
    SetF as SetF,
)
from judged.measures import (
    SetP as SetP,
)
from judged.measures import (
    SetR as SetR,
)
from judged.measures import (
    Success as Success,
)
from judged.measures import (
    UnjudgedShare as UnjudgedShare,
)
from judged.measures import (
    measure as measure,
)
from judged.measures import (
    nDCG as nDCG,
)
from judged.measures import (
    param as param,
)
from judged.measures import (
    parse as parse,
)
from judged.measures import (
    parse_many as parse_many,
)

__version__: str
