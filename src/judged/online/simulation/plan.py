"""What is simulated: every assumption is a field that can be seen and changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias, get_args

from judged.errors import InputError
from judged.online.mixed_lists import LENGTHS, METHODS
from judged.online.simulation.clicks import Browsing, PositionBased, positive, probabilities, probability, shares
from judged.results.spelling import one_of

Kind: TypeAlias = Literal["spelling", "specialize", "generalize", "substitute"]
Drifting: TypeAlias = Literal["attractiveness", "latency", "reformulation"]
KINDS: tuple[Kind, ...] = ("spelling", "specialize", "generalize", "substitute")


@dataclass(frozen=True)
class Collection:
    """What can be searched for and found.

    Parameters
    ----------
    topics
        How many things users look for.
    zipf
        Exponent of their popularity: topic i is looked for in proportion to ``(i + 1) ** -zipf``.
    documents
        Documents a topic: what a ranker orders.
    grades
        Share of documents of grade 0, 1, 2, ...
    attractiveness, satisfaction
        By grade: the probability that a result is clicked when it is looked at (by a user of propensity 1), and that
        a click on it satisfies.
    short
        Share of topics of which fewer results are found than fit a page.
    misspelt
        Share of tasks that begin with a misspelt text.
    zero, zero_misspelt
        Probability that a text finds nothing, and that a topic's misspelt texts find nothing.
    rescue
        Probability that the engine then answers a changed query.
    versions
        Different texts of a topic get one of so many result lists.
    seed
        Of the collection. It is apart from the seed of the users, so that many logs of one collection can be drawn.
    """

    topics: int = 60
    zipf: float = 1.0
    documents: int = 30
    grades: tuple[float, ...] = (0.6, 0.2, 0.12, 0.08)
    attractiveness: tuple[float, ...] = (0.08, 0.3, 0.55, 0.8)
    satisfaction: tuple[float, ...] = (0.1, 0.35, 0.6, 0.85)
    short: float = 0.05
    misspelt: float = 0.08
    zero: float = 0.02
    zero_misspelt: float = 0.4
    rescue: float = 0.5
    versions: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        probability(self, "short", "misspelt", "zero", "zero_misspelt", "rescue")
        positive(self, "topics", "versions")
        shares("grades", self.grades)
        for name in ("attractiveness", "satisfaction"):
            values: tuple[float, ...] = getattr(self, name)
            if len(values) != len(self.grades):
                raise InputError(f"{name} has {len(values)} values for {len(self.grades)} grades", fix="one a grade")
            probabilities(name, values)


@dataclass(frozen=True)
class Arm:
    """A variant of the experiment.

    Parameters
    ----------
    name, ranker
        Of the variant, and of what ranks there.
    noise
        Standard deviation of what is added to a document's grade before documents are ordered: 0 is the ideal order.
    probability
        With which a user is assigned to it.
    """

    name: str
    ranker: str
    noise: float
    probability: float


@dataclass(frozen=True)
class Interleaving:
    """Everybody sees lists of the two arms mixed, as `judged.online.mixed_lists.interleave` mixes them.

    Parameters
    ----------
    method, length
        As of `judged.online.mixed_lists.interleave`.
    """

    method: str = "team-draft"
    length: str = "shorter"

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)
        one_of("length", self.length, LENGTHS)


@dataclass(frozen=True)
class Users:
    """Who searches.

    Parameters
    ----------
    number
        People; bots come on top.
    least, tail, most
        A user wants to see ``least * U ** (-1 / tail)`` pages, rounded down, at most `most`: a Pareto tail.
    propensity
        Both parameters of the beta distribution of a factor on each user's probabilities of clicking, which is what
        makes pages of one user alike; None: the factor is 1 for all.
    together
        Correlation of that factor with the number of pages, of a Gaussian copula.
    devices, languages
        Names, and the shares of users.
    """

    number: int = 400
    least: float = 3.0
    tail: float = 1.8
    most: int = 200
    propensity: tuple[float, float] | None = (4.0, 2.0)
    together: float = 0.0
    devices: Mapping[str, float] = field(default_factory=lambda: {"desktop": 0.5, "mobile": 0.4, "tablet": 0.1})
    languages: Mapping[str, float] = field(default_factory=lambda: {"en": 0.7, "de": 0.3})

    def __post_init__(self) -> None:
        positive(self, "number", "tail")
        positive(self, "least", "most", least=1.0)
        shares("devices", self.devices.values())
        shares("languages", self.languages.values())
        if self.propensity is not None and not min(self.propensity) > 0:
            raise InputError("propensity is no beta distribution", fix="give two parameters above 0, or None")
        if not -1 < self.together < 1:
            raise InputError("together must be between -1 and 1", fix="0 keeps propensity and pages independent")


@dataclass(frozen=True)
class Visits:
    """How users go on after a page.

    Parameters
    ----------
    after_failure, after_zero, after_success
        Probability of a reformulation when no click satisfied, nothing was shown, or a click satisfied.
    kinds
        Shares of the kinds; where a text is too short or too long for its kind, it is the opposite one.
    next_page
        Probability of asking for the next page when nothing was clicked on this one.
    pages
        At most so many pages of a list.
    again
        Probability of another task in the same session, where it is of another department.
    churn
        Probability that a user who was not satisfied in a whole session never returns.
    think
        Median and sigma (of the logarithm) of the seconds between leaving a page and the next of the session; at
        most 120 s.
    hours_between
        Mean hours between sessions, on top of 31 minutes.
    """

    after_failure: float = 0.4
    after_zero: float = 0.7
    after_success: float = 0.05
    kinds: Mapping[Kind, float] = field(
        default_factory=lambda: {"spelling": 0.2, "specialize": 0.35, "generalize": 0.2, "substitute": 0.25}
    )
    next_page: float = 0.0
    pages: int = 3
    again: float = 0.3
    churn: float = 0.0
    think: tuple[float, float] = (8.0, 0.6)
    hours_between: float = 24.0

    def __post_init__(self) -> None:
        probability(self, "after_failure", "after_zero", "after_success", "next_page", "again", "churn")
        shares("kinds", self.kinds.values())
        positive(self, "pages", least=1.0)


@dataclass(frozen=True)
class OnThePage:
    """What happens on a page and behind a click.

    Parameters
    ----------
    size
        Results a page.
    look
        Median and sigma of the seconds that a result is looked at.
    dwell_satisfied, dwell_not
        Median and sigma of the seconds of a visit; at least 1 s, at most `longest`, which must stay below the gap
        that ends a session.
    longest
        Seconds.
    hover, copy
        Probability of a hover on a result that was looked at, and of copying from a page without a click.
    cart_satisfied, cart_not
        Probability that the opened product is put into the cart.
    purchase
        Probability that what is in the cart is bought.
    price
        Median and sigma of the products' prices.
    heartbeat
        Seconds between heartbeats of an opened result, at most six of a visit; None: there are none.
    exits
        Probability that leaving a page or a visit is logged. A visit that ends a session is never seen to end.
    latency
        Median and sigma of the engine's milliseconds.
    filtered
        Share of pages with a filter set.
    """

    size: int = 10
    look: tuple[float, float] = (1.2, 0.5)
    dwell_satisfied: tuple[float, float] = (80.0, 0.5)
    dwell_not: tuple[float, float] = (8.0, 0.5)
    longest: float = 1200.0
    hover: float = 0.05
    copy: float = 0.0
    cart_satisfied: float = 0.15
    cart_not: float = 0.01
    purchase: float = 0.4
    price: tuple[float, float] = (25.0, 0.8)
    heartbeat: float | None = None
    exits: float = 1.0
    latency: tuple[float, float] = (60.0, 0.5)
    filtered: float = 0.0

    def __post_init__(self) -> None:
        probability(self, "hover", "copy", "cart_satisfied", "cart_not", "purchase", "exits", "filtered")
        positive(self, "size", least=1.0)
        if not 1 <= self.longest < 1800:
            raise InputError("longest must be at least 1 s and below 30 minutes", fix="a longer visit ends a session")
        if self.heartbeat is not None:
            positive(self, "heartbeat", least=1.0)


@dataclass(frozen=True)
class Drift:
    """A change point: from a day on, a quantity is multiplied by a factor."""

    what: Drifting
    day: float
    factor: float

    def __post_init__(self) -> None:
        one_of("what", self.what, get_args(Drifting))


@dataclass(frozen=True)
class Bots:
    """Programs among the users.

    Parameters
    ----------
    rate
        Bots by people: 0.01 adds one bot to a hundred users.
    pages, a_minute
        Pages of each bot, and how fast they are asked for.
    clicks
        Probability of a click on each result shown.
    declared
        Share whose user agent says so.
    """

    rate: float = 0.0
    pages: int = 300
    a_minute: float = 60.0
    clicks: float = 0.0
    declared: float = 0.5

    def __post_init__(self) -> None:
        probability(self, "rate", "clicks", "declared")
        positive(self, "pages", "a_minute")


@dataclass(frozen=True)
class Broken:
    """What goes wrong on the way into the log. Every row suffers one thing at most.

    Parameters
    ----------
    duplicated_events, lost_events, future_events, unreadable_times
        Share of events that are written twice under one id, not at all, with a time ten years ahead, or with a time
        that is none.
    duplicated_queries, facet_requests, lost_queries
        Share of pages whose query is written twice, has a request for facets alone (size 0, no results) under the
        same id behind it, or is not written.
    zero_based
        The application whose ranks count from 0.
    skewed_users, skew
        Share of users whose clock is behind, and by how many seconds: their events come before their queries.
    truncated
        The last line of a text file is cut off (ndjson only).
    """

    duplicated_events: float = 0.0
    lost_events: float = 0.0
    future_events: float = 0.0
    unreadable_times: float = 0.0
    duplicated_queries: float = 0.0
    facet_requests: float = 0.0
    lost_queries: float = 0.0
    zero_based: str | None = None
    skewed_users: float = 0.0
    skew: float = 600.0
    truncated: bool = False

    def __post_init__(self) -> None:
        events = (self.duplicated_events, self.lost_events, self.future_events, self.unreadable_times)
        queries = (self.duplicated_queries, self.facet_requests, self.lost_queries)
        probability(self, *(one.name for one in fields(self) if one.type == "float" and one.name != "skew"))
        probabilities("the sum of what happens to events", (sum(events),))
        probabilities("the sum of what happens to queries", (sum(queries),))


@dataclass(frozen=True)
class SimulationPlan:
    """Everything that a simulated log is made from.

    Parameters
    ----------
    collection, arms, browsing, users, visits, page
        See there. Users are assigned to one of the arms for good.
    experiment
        Its name.
    interleaving
        How first pages are mixed of the lists of both arms; None: users see the lists of their arm.
    applications
        Where pages are asked for, and the shares.
    days, start
        Days over which users arrive, and the first, in milliseconds since 1970 UTC.
    drift
        Change points.
    fresh_days
        Every so many days all result lists change to another version; None: never.
    bots, broken
        See there.

    Raises
    ------
    InputError
        If a probability is not one, shares do not add up to 1, or something else is out of its range.

    Examples
    --------
    >>> plan = SimulationPlan(users=Users(number=50), visits=Visits(next_page=0.3))
    >>> plan.page.size, plan.depth, [arm.name for arm in plan.arms]
    (10, 30, ['control'])
    """

    collection: Collection = field(default_factory=Collection)
    arms: tuple[Arm, ...] = (Arm("control", "ranker-a", 0.8, 1.0),)
    browsing: Browsing = field(default_factory=PositionBased)
    users: Users = field(default_factory=Users)
    visits: Visits = field(default_factory=Visits)
    page: OnThePage = field(default_factory=OnThePage)
    experiment: str = "ranking"
    interleaving: Interleaving | None = None
    applications: Mapping[str, float] = field(default_factory=lambda: {"primary-search": 1.0})
    days: float = 28.0
    start: int = 1_735_689_600_000  # 2025-01-01
    drift: tuple[Drift, ...] = ()
    fresh_days: float | None = None
    bots: Bots = field(default_factory=Bots)
    broken: Broken = field(default_factory=Broken)

    def __post_init__(self) -> None:
        if len({one.name for one in self.arms}) < len(self.arms):
            raise InputError("two arms have one name", fix="name every arm differently")
        shares("arms", (one.probability for one in self.arms))
        if self.interleaving is not None and (len(self.arms) != 2 or self.visits.next_page > 0):
            raise InputError("first pages of two arms can be mixed, and no others", fix="two arms, and next_page=0")
        shares("applications", self.applications.values())
        positive(self, "days")
        if self.collection.documents < self.depth:
            raise InputError(
                f"{self.collection.documents} documents of a topic do not fill {self.depth} ranks",
                fix="more documents, a smaller page, or fewer pages",
            )

    @property
    def depth(self) -> int:
        """Ranks that a user can come to see."""
        return self.page.size * (self.visits.pages if self.visits.next_page > 0 else 1)
