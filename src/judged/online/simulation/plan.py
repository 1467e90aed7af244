"""Assumptions of a simulated log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias, get_args

from judged.errors import InputError
from judged.online.mixed_lists import LENGTHS, METHODS
from judged.online.simulation import clicks as models
from judged.online.simulation.clicks import Browsing, PositionBased
from judged.results.spelling import one_of

Kind: TypeAlias = Literal["spelling", "specialize", "generalize", "substitute"]
Drifting: TypeAlias = Literal["attractiveness", "latency", "reformulation"]
KINDS: tuple[Kind, ...] = ("spelling", "specialize", "generalize", "substitute")


@dataclass(frozen=True)
class SimulatedCollection:
    """Topics and documents of the search engine.

    Parameters
    ----------
    topics
        Number of topics.
    zipf
        Exponent of their popularity: topic i has weight ``(i + 1) ** -zipf``.
    documents
        Number of documents per topic, which a ranker orders.
    grades
        Share of documents of grade 0, 1, 2, ...
    attractiveness, satisfaction
        By grade: probability of a click on an examined result (for a user of propensity 1), and of satisfaction after
        a click.
    short
        Share of topics with fewer results than the page size.
    misspelt
        Share of tasks that begin with a misspelled query.
    zero, zero_misspelt
        Probability that a query has zero results, and that misspelled queries of a topic have zero results.
    rescue
        Probability that the engine then answers a corrected query.
    versions
        Number of result lists per topic; each query text gets one of them.
    seed
        Seed of the collection, independent of the seed of the users, to simulate many logs of one collection.
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
        models.check_probability(self, "short", "misspelt", "zero", "zero_misspelt", "rescue")
        models.check_positive(self, "topics", "versions")
        models.check_shares("grades", self.grades)
        for name in ("attractiveness", "satisfaction"):
            values: tuple[float, ...] = getattr(self, name)
            if len(values) != len(self.grades):
                raise InputError(
                    f"{name} has {len(values)} values for {len(self.grades)} grades", fix="use one value per grade"
                )
            models.check_probabilities(name, values)


@dataclass(frozen=True)
class SimulatedArm:
    """Variant of the experiment.

    Parameters
    ----------
    name, ranker
        Names of the variant and of its ranker.
    noise
        Standard deviation of the noise that is added to grades before documents are ranked; 0: ideal ranking.
    probability
        Assignment probability.
    """

    name: str
    ranker: str
    noise: float
    probability: float


@dataclass(frozen=True)
class SimulatedInterleaving:
    """Interleaving of the lists of the two arms for all users.

    Parameters
    ----------
    method, length
        See `judged.online.mixed_lists.interleave`.
    """

    method: str = "team-draft"
    length: str = "shorter"

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)
        one_of("length", self.length, LENGTHS)


@dataclass(frozen=True)
class Users:
    """Population of users.

    Parameters
    ----------
    number
        Number of people, without bots.
    least, tail, most
        A user requests ``least * U ** (-1 / tail)`` pages, rounded down, at most `most`: a Pareto distribution.
    propensity
        Parameters of the beta distribution of a factor on each user's click probabilities, which correlates the pages
        of a user; None: the factor is 1 for all.
    correlation
        Correlation of that factor with the number of pages, in a Gaussian copula.
    devices, languages
        Shares of users by name.
    """

    number: int = 400
    least: float = 3.0
    tail: float = 1.8
    most: int = 200
    propensity: tuple[float, float] | None = (4.0, 2.0)
    correlation: float = 0.0
    devices: Mapping[str, float] = field(default_factory=lambda: {"desktop": 0.5, "mobile": 0.4, "tablet": 0.1})
    languages: Mapping[str, float] = field(default_factory=lambda: {"en": 0.7, "de": 0.3})

    def __post_init__(self) -> None:
        models.check_positive(self, "number", "tail")
        models.check_positive(self, "least", "most", minimum=1.0)
        models.check_shares("devices", self.devices.values())
        models.check_shares("languages", self.languages.values())
        if self.propensity is not None and not min(self.propensity) > 0:
            raise InputError("propensity must be above 0", fix="use two parameters of a beta distribution, or None")
        if not -1 < self.correlation < 1:
            raise InputError("correlation must be between -1 and 1", fix="use 0 for independence")


@dataclass(frozen=True)
class Visits:
    """Behavior of users after a page.

    Parameters
    ----------
    after_failure, after_zero, after_success
        Probability of a reformulation after a page without a satisfied click, without results, and with a satisfied
        click.
    kinds
        Shares of the reformulation types. A query that is too short or long for its type gets the opposite type.
    next_page
        Probability of requesting the next page after a page without a click.
    pages
        Maximum number of pages of a list.
    again
        Probability of another task, of another department, in the same session.
    churn
        Probability that a user without a satisfied click in a session never returns.
    think
        Median and log-standard deviation of the seconds between two pages of a session; at most 120 s.
    hours_between
        Mean hours between sessions, in addition to 31 minutes.
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
        models.check_probability(self, "after_failure", "after_zero", "after_success", "next_page", "again", "churn")
        models.check_shares("kinds", self.kinds.values())
        models.check_positive(self, "pages", minimum=1.0)


@dataclass(frozen=True)
class PageBehavior:
    """Behavior on a page and after a click.

    Parameters
    ----------
    size
        Results per page.
    look
        Median and log-standard deviation of the seconds of examining a result.
    dwell_satisfied, dwell_not
        Median and log-standard deviation of the seconds of a visit, between 1 s and `longest`.
    longest
        Maximum seconds of a visit, below the gap that ends a session.
    hover, copy
        Probability of a hover on an examined result, and of copying from a page without a click.
    cart_satisfied, cart_not
        Probability that an opened product is added to the cart.
    purchase
        Probability that a product in the cart is bought.
    price
        Median and log-standard deviation of prices.
    heartbeat
        Seconds between heartbeats of an opened result, at most six per visit; None: no heartbeats.
    exits
        Probability that the end of a page or visit is logged. The end of the last visit of a session is never logged.
    latency
        Median and log-standard deviation of the latency in milliseconds.
    filtered
        Share of pages with a filter.
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
        models.check_probability(self, "hover", "copy", "cart_satisfied", "cart_not", "purchase", "exits", "filtered")
        models.check_positive(self, "size", minimum=1.0)
        if not 1 <= self.longest < 1800:
            raise InputError(
                "`longest` must be at least 1 s and below 30 minutes", fix="use a value such as 1200 (seconds)"
            )
        if self.heartbeat is not None:
            models.check_positive(self, "heartbeat", minimum=1.0)


@dataclass(frozen=True)
class Drift:
    """Change point: from a day on, a quantity is multiplied by a factor."""

    quantity: Drifting
    day: float
    factor: float

    def __post_init__(self) -> None:
        one_of("quantity", self.quantity, get_args(Drifting))


@dataclass(frozen=True)
class Bots:
    """Bots among the users.

    Parameters
    ----------
    rate
        Ratio of bots to people: 0.01 adds one bot per hundred users.
    pages, a_minute
        Pages of each bot, and pages per minute.
    clicks
        Probability of a click on each shown result.
    declared
        Share of bots that declare themselves in the user agent.
    """

    rate: float = 0.0
    pages: int = 300
    a_minute: float = 60.0
    clicks: float = 0.0
    declared: float = 0.5

    def __post_init__(self) -> None:
        models.check_probability(self, "rate", "clicks", "declared")
        models.check_positive(self, "pages", "a_minute")


@dataclass(frozen=True)
class LogDamage:
    """Damage of the written log. Each row has at most one kind of damage.

    Parameters
    ----------
    duplicated_events, lost_events, future_events, unreadable_times
        Share of events that are written twice with the same ID, not written, or written with a time ten years ahead,
        or with an invalid time.
    duplicated_queries, facet_requests, lost_queries
        Share of pages whose query is written twice, followed by a facet request (size 0, no results) with the same
        ID, or not written.
    zero_based
        Application whose ranks count from 0.
    skewed_users, skew
        Share of users whose clock is slow, and by how many seconds: their events precede their queries.
    truncated
        Whether the last line of a text file is truncated (ndjson only).
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
        # With postponed annotations, the types of fields are strings.
        names = {column.name for column in fields(self) if column.type == "float"}
        models.check_probability(self, *sorted(names - {"skew"}))
        models.check_probabilities(
            "the sum of duplicated_events, lost_events, future_events, and unreadable_times", (sum(events),)
        )
        models.check_probabilities("the sum of duplicated_queries, facet_requests, and lost_queries", (sum(queries),))


@dataclass(frozen=True)
class SimulationPlan:
    """All assumptions of a simulated log.

    Parameters
    ----------
    collection, arms, browsing, users, visits, page
        See these classes. Each user is assigned to one arm permanently.
    experiment
        Name of the experiment.
    interleaving
        Interleaving of first pages; None: users see the lists of their arm.
    applications
        Shares of pages by application.
    days, start
        Number of days over which users arrive, and the first day, in milliseconds since 1970 UTC.
    drift
        Change points.
    fresh_days
        Number of days after which all result lists change to another version; None: never.
    bots, damage
        See these classes.

    Raises
    ------
    InputError
        If a probability or other value is out of range, or shares do not add up to 1.

    Examples
    --------
    >>> plan = SimulationPlan(users=Users(number=50), visits=Visits(next_page=0.3))
    >>> plan.page.size, plan.depth, [arm.name for arm in plan.arms]
    (10, 30, ['control'])
    """

    collection: SimulatedCollection = field(default_factory=SimulatedCollection)
    arms: tuple[SimulatedArm, ...] = (SimulatedArm("control", "ranker-a", 0.8, 1.0),)
    browsing: Browsing = field(default_factory=PositionBased)
    users: Users = field(default_factory=Users)
    visits: Visits = field(default_factory=Visits)
    page: PageBehavior = field(default_factory=PageBehavior)
    experiment: str = "ranking"
    interleaving: SimulatedInterleaving | None = None
    applications: Mapping[str, float] = field(default_factory=lambda: {"primary-search": 1.0})
    days: float = 28.0
    start: int = 1_735_689_600_000  # 2025-01-01
    drift: tuple[Drift, ...] = ()
    fresh_days: float | None = None
    bots: Bots = field(default_factory=Bots)
    damage: LogDamage = field(default_factory=LogDamage)

    def __post_init__(self) -> None:
        if len({arm.name for arm in self.arms}) < len(self.arms):
            raise InputError("two arms have the same name", fix="use unique names")
        models.check_shares("arms", (arm.probability for arm in self.arms))
        if self.interleaving is not None and (len(self.arms) != 2 or self.visits.next_page > 0):
            raise InputError(
                "interleaving requires two arms and one result page per query", fix="use two arms and next_page=0"
            )
        models.check_shares("applications", self.applications.values())
        models.check_positive(self, "days")
        if self.collection.documents < self.depth:
            raise InputError(
                f"{self.collection.documents} documents of a topic do not fill {self.depth} ranks",
                fix="use more documents, a smaller page, or fewer pages",
            )

    @property
    def depth(self) -> int:
        """Number of ranks that a user can reach."""
        return self.page.size * (self.visits.pages if self.visits.next_page > 0 else 1)
