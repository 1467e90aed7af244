"""The click models, as data: what each takes for granted about how users look at a page and click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from judged.results.spelling import one_of


@dataclass(frozen=True)
class ClickModel:
    """A result is clicked if it is looked at and attractive: a model says what decides that it is looked at.

    Either the rank does (`examined`), or users go down the page and may stop at every result (`go_on`).

    Parameters
    ----------
    name, title, source
        What it is called, and where it is from.
    assumes
        Its assumption, in a clause.
    attractive
        Whether results differ; otherwise every result that is looked at is clicked.
    examined
        What decides that a result is looked at: nothing (all are), its rank, or its rank and the last click above.
    satisfied
        Of models that go down the page: whose a click's probability to satisfy is; ``always``: it is 1;
        ``attractiveness``: it is that of the result.
    go_on
        The probability to go on to the next result after none was clicked, after a click that did not satisfy, and
        after one that did: a number, or the name of a parameter. Empty for the other models.
    """

    name: str
    title: str
    source: str
    assumes: str
    attractive: bool = True
    examined: Literal["", "rank", "rank and last click"] = ""
    satisfied: Literal["", "always", "pair", "rank", "attractiveness"] = ""
    go_on: tuple[float | str, ...] = ()

    @property
    def continuation(self) -> tuple[str, ...]:
        """Names of its parameters of going on, each once."""
        return tuple(dict.fromkeys(name for name in self.go_on if isinstance(name, str)))


_BOOK = "Chuklin, Markov and de Rijke, Click Models for Web Search, 2015"
_ALL = (
    ClickModel(
        "RCTR", "click-through rate by rank", f"{_BOOK}, 3.1",
        "the rank alone decides, whatever stands there", attractive=False, examined="rank",
    ),
    ClickModel(
        "DCTR", "click-through rate by document", f"{_BOOK}, 3.1",
        "all results are looked at",
    ),
    ClickModel(
        "PBM", "position-based model", "Craswell et al., WSDM 2008",
        "the rank decides whether a result is looked at", examined="rank",
    ),
    ClickModel(
        "CM", "cascade model", "Craswell et al., WSDM 2008",
        "users go down to their first click, and stop there", satisfied="always", go_on=(1.0, 0.0, 0.0),
    ),
    ClickModel(
        "DCM", "dependent click model", "Guo, Liu and Wang, WSDM 2009",
        "users go down, and after a click the rank decides whether they go on",
        satisfied="rank", go_on=(1.0, 1.0, 0.0),
    ),
    ClickModel(
        "CCM", "click chain model", "Guo et al., WWW 2009",
        "users go down, and go on with three probabilities: after no click, and after clicks by how good the result is",
        satisfied="attractiveness", go_on=("after no click", "after an unsatisfying click", "after a satisfying click"),
    ),
    ClickModel(
        "UBM", "user browsing model", "Dupret and Piwowarski, SIGIR 2008",
        "the rank and the last click above decide whether a result is looked at", examined="rank and last click",
    ),
    ClickModel(
        "DBN", "dynamic Bayesian network", "Chapelle and Zhang, WWW 2009",
        "users go down, stop when a click satisfies, and otherwise go on with one probability",
        satisfied="pair", go_on=("not satisfied", "not satisfied", 0.0),
    ),
    ClickModel(
        "SDBN", "simplified dynamic Bayesian network", "Chapelle and Zhang, WWW 2009",
        "users go down until a click satisfies", satisfied="pair", go_on=(1.0, 1.0, 0.0),
    ),
)  # fmt: skip

MODELS: dict[str, ClickModel] = {model.name: model for model in _ALL}
"""Name to model, the plainest first."""


def model_of(name: str) -> ClickModel:
    """Give a model by its name.

    Examples
    --------
    >>> model_of("PBM").title
    'position-based model'

    Raises
    ------
    InputError
        If there is none.
    """
    return MODELS[one_of("model", name, MODELS)]
