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
    tokens_in: int = 0
    tokens_out: int = 0
    # of calls under way: whole numbers, since a sum of amounts of money keeps a rounding error when they are taken back
    _reserved_in: int = 0
    _reserved_out: int = 0
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

    @property
    def money(self) -> float:
        """Money spent and reserved, in the unit of the prices; 0 where they are not known."""
        return self.cost(self.tokens_in + self._reserved_in, self.tokens_out + self._reserved_out)

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """Give what so many tokens cost; 0 where prices are not known."""
        endpoint = self.endpoint
        return (tokens_in * (endpoint.price_in or 0) + tokens_out * (endpoint.price_out or 0)) / _MILLION

    def take(self, tokens_in: int, tokens_out: int | None) -> tuple[int, int]:
        """Reserve a call and the most tokens that it can use, before it is sent; return these tokens.

        Raises
        ------
        SpentError
            If that is more than is left.
        InputError
            If money is limited, and nothing limits the tokens of an answer.
        """
        if tokens_out is None and self.most_money is not None:
            raise InputError("a budget in money needs a limit of tokens", fix="set max_tokens in the endpoint's file")
        reserved = tokens_in, tokens_out or 0
        with self._lock:
            if self.most_calls is not None and self.calls >= self.most_calls:
                raise SpentError("no call is left")
            if self.most_money is not None and self.money + self.cost(*reserved) > self.most_money:
                raise SpentError("the next call might cost more than is left")
            self.calls += 1
            self._reserved_in += reserved[0]
            self._reserved_out += reserved[1]
        return reserved

    def settle(self, reserved: tuple[int, int], tokens_in: int, tokens_out: int) -> None:
        """Replace what `take` reserved with what was used."""
        with self._lock:
            self._reserved_in -= reserved[0]
            self._reserved_out -= reserved[1]
            self.tokens_in += tokens_in
            self.tokens_out += tokens_out
