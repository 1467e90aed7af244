"""What may still be sent: calls and money are taken before a call is sent, so no number of threads exceeds them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from judged.errors import InputError, JudgedError

if TYPE_CHECKING:
    from judged.labels.asking.client import Endpoint

_MILLION = 1_000_000


class SpentError(JudgedError):
    """The next call might exceed the budget, or nothing more is sent."""


@dataclass
class Budget:
    """Calls and money of one run. Each request that is sent is a call, also one that is sent again.

    Of a call under way the most that it can cost counts; once its answer is there, what the endpoint says that it used.
    """

    endpoint: Endpoint
    most_calls: int | None = None
    most_money: float | None = None
    calls: int = 0
    money: float = 0.0  # in the unit of the prices; stays 0 where they are not known
    tokens_in: int = 0
    tokens_out: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        if self.most_money is not None and not self.endpoint.priced:
            fix = "set price_in and price_out, per million tokens, in the endpoint's file"
            raise InputError("a budget in money needs prices", fix=fix)
        if min(self.most_calls or 0, self.most_money or 0) < 0 or math.isnan(self.most_money or 0):
            raise InputError("a budget is a number, and not negative", fix="give 0 or more")

    def __getstate__(self) -> dict[str, Any]:
        """Give what goes to another process with an answer: there it is over."""
        return {**vars(self), "_lock": None}

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """Give what so many tokens cost; 0 where prices are not known."""
        endpoint = self.endpoint
        return (tokens_in * (endpoint.price_in or 0) + tokens_out * (endpoint.price_out or 0)) / _MILLION

    def take(self, tokens_in: int, tokens_out: int | None) -> float:
        """Take a call and the most that it can cost, before it is sent.

        Raises
        ------
        SpentError
            If that is more than is left.
        InputError
            If money is limited, and nothing limits the tokens of an answer.
        """
        if tokens_out is None and self.most_money is not None:
            raise InputError("a budget in money needs a limit of tokens", fix="set max_tokens in the endpoint's file")
        most = self.cost(tokens_in, tokens_out or 0)
        with self._lock:
            if self.most_calls is not None and self.calls >= self.most_calls:
                raise SpentError("no call is left")
            if self.most_money is not None and self.money + most > self.most_money:
                raise SpentError("the next call might cost more than is left")
            self.calls += 1
            self.money += most
        return most

    def settle(self, most: float, tokens_in: int, tokens_out: int) -> None:
        """Put what was used in the place of what was taken."""
        with self._lock:
            self.money += self.cost(tokens_in, tokens_out) - most
            self.tokens_in += tokens_in
            self.tokens_out += tokens_out
