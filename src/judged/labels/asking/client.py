"""One endpoint that speaks OpenAI's chat protocol: how it is configured, and how it is asked without losing anything.

Messages never quote what was sent, what came back, or the key: an endpoint may say any of them in its errors.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit

from judged.data.toml_files import parse_toml, read_toml
from judged.errors import InputError, JudgedError, MissingExtraError, add_path_to_errors

if TYPE_CHECKING:
    from httpx import Response


_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OURS = frozenset({"messages", "model", "n", "stream"})  # fields of a request that `body` does not replace
_CODE = re.compile(r"[a-z]{1,24}(_[a-z]{1,24}){0,5}")  # of an error: a word of the protocol, never a key or a text
_MOST_TOKENS = 10**12  # of one request: more is no count
_CERTAIN = 0.001  # a log probability, but for rounding: more is none
_LONGEST_PAUSE = 120.0  # seconds: who is told to wait longer is told so, and goes on later
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,), "int": (int,), "float": (int, float), "float | None": (int, float), "tuple[str, ...]": (list, tuple),
    "Mapping[str, Any]": (Mapping,),
}  # fmt: skip


class RefusedError(JudgedError):
    """The endpoint does not take this request, and would not take it again."""

    def __init__(self, status: int, code: str) -> None:
        self.status = status
        super().__init__(f"{status} {code}".strip())


class UnansweredError(JudgedError):
    """There is no answer after all attempts; or the endpoint says that there will be none for long."""

    def __init__(self, why: str, *, for_long: bool = False) -> None:
        self.for_long = for_long
        super().__init__(why)


class Reply(NamedTuple):
    """What a model answered."""

    content: str
    finish: str = "stop"
    refused: bool = False  # said so by the protocol, rather than in its text
    top: Mapping[str, float] = {}  # log probabilities of its first token that is no blank
    seconds: float | None = None


@dataclass(frozen=True)
class Endpoint:
    """Where models are asked, and how.

    Parameters
    ----------
    base_url
        The address before ``/chat/completions``; no redirection is followed to another one.
    model
        Its name there. The store knows answers by it: give another name to another model.
    key_variable
        The name of the environment variable that holds the key; empty where none is needed.
    requests_per_minute
        At most so many are sent; 0 for no limit. Whoever answers 429 is waited for in any case.
    workers
        Requests under way at once.
    timeout, retries, backoff
        Seconds without a sign of an answer; how often is asked again after that, after a broken connection, 408, 429,
        and 5xx; and the seconds before it is, twice as many each time, up to 120.
    temperature, seed, max_tokens, logprobs
        Sent with each request. `logprobs` is the number of first tokens whose probabilities are wanted, 0 for none; a
        repeat has a seed of its own.
    price_in, price_out
        What a million tokens cost, sent and received; None: not known.
    body, without
        Further fields of a request, and names of those above that the endpoint does not take.

    Examples
    --------
    >>> Endpoint("http://127.0.0.1:8080/v1", "small").host
    '127.0.0.1:8080'
    """

    base_url: str
    model: str
    key_variable: str = field(default="", repr=False)
    requests_per_minute: float = 0
    workers: int = 4
    timeout: float = 60.0
    retries: int = 5
    backoff: float = 1.0
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int = 16
    logprobs: int = 5
    price_in: float | None = None
    price_out: float | None = None
    body: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            fits = isinstance(value, _KINDS[str(each.type)]) and not isinstance(value, bool)
            if not (fits or (value is None and "None" in str(each.type))):
                raise InputError(f"{each.name} of the endpoint cannot be used", fix=f"give {each.type}")
        try:
            parts = urlsplit(self.base_url)
            usable = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
        except ValueError:  # brackets, or a port that is no number
            parts, usable = urlsplit(""), False
        if not usable or "@" in parts.netloc or parts.query or parts.fragment:
            fix = "give http:// or https:// with a host and a path; a key belongs into an environment variable"
            raise InputError("base_url of the endpoint cannot be used", fix=fix)
        if self.key_variable and not _VARIABLE.fullmatch(self.key_variable):
            fix = "give the name of the variable that holds the key, not the key"
            raise InputError("key_variable is not the name of an environment variable", fix=fix)
        least = (self.retries, self.requests_per_minute, self.backoff, self.logprobs)
        amounts = (*least, self.price_in or 0, self.price_out or 0, self.timeout, self.temperature)
        first = min(self.workers, self.max_tokens) < 1 or self.timeout <= 0
        if not self.model or first or not all(map(math.isfinite, amounts)) or min(amounts) < 0:
            fix = (
                "name the model; give workers and max_tokens from 1, a timeout above 0, and nothing below 0 or endless"
            )
            raise InputError("the endpoint's settings cannot be used", fix=fix)
        if ours := sorted(_OURS & set(self.body)):
            fix = "leave it out: what is sent is what was shown, to the model that is named, for one answer"
            raise InputError(f"body of the endpoint sets {', '.join(ours)}", fix=fix)
        limits = [self.body[name] for name in ("max_tokens", "max_completion_tokens") if name in self.body]
        if any(type(limit) is not int or limit < 1 for limit in limits):
            raise InputError("a limit of tokens in body cannot be used", fix="give a whole number from 1")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file of TOML, whose keys are the parameters.

        Raises
        ------
        InputError
            If it cannot be read, or holds something else; no value of it is ever named.
        """
        known = parse_toml(read_toml(path), str(path))
        allowed = {each.name for each in fields(cls)}
        if odd := [*(set(known) - allowed), *({"base_url", "model"} - set(known))]:
            fix = f"use {', '.join(sorted(allowed))}; a key stands in the environment variable that key_variable names"
            raise InputError(f"odd or missing: {', '.join(sorted(odd))}", fix=fix, path=str(path))
        if isinstance(known.get("without"), list):
            known["without"] = tuple(known["without"])
        with add_path_to_errors(path):
            return cls(**known)

    @property
    def host(self) -> str:
        """Where requests go."""
        return urlsplit(self.base_url).netloc

    @property
    def priced(self) -> bool:
        """Whether it is known what tokens cost."""
        return self.price_in is not None and self.price_out is not None

    def request(self, messages: list[dict[str, str]], repeat: int = 0, max_tokens: int = 0) -> dict[str, Any]:
        """Write the body of a request."""
        made: dict[str, Any] = {
            "model": self.model, "messages": messages, "temperature": self.temperature, "seed": self.seed + repeat,
            "max_tokens": max(max_tokens, self.max_tokens),
        }  # fmt: skip
        if self.logprobs:
            made |= {"logprobs": True, "top_logprobs": self.logprobs}
        return {name: value for name, value in made.items() if name not in self.without} | dict(self.body)

    def key(self) -> str:
        """Look up the key.

        Raises
        ------
        InputError
            If the variable is empty, or holds what no header can.
        """
        key = os.environ.get(self.key_variable, "").strip() if self.key_variable else ""
        if self.key_variable and not (key and key.isascii() and key.isprintable()):
            fix = "export the key in that variable"
            raise InputError("the environment variable that key_variable names holds no key", fix=fix)
        return key


class Client:
    """Sends requests from several threads, within a budget, at the pace that the endpoint allows."""

    def __init__(self, endpoint: Endpoint, budget: Budget) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtraError("httpx", "labels") from None
        self._key = key = endpoint.key()
        self._endpoint, self._budget = endpoint, budget
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=endpoint.timeout,
            limits=httpx.Limits(max_connections=endpoint.workers),
        )
        self._url = f"{endpoint.base_url.rstrip('/')}/chat/completions"
        self._gap = 60 / endpoint.requests_per_minute if endpoint.requests_per_minute else 0.0
        self._next, self._lock = 0.0, Lock()
        self.stopping = Event()  # set: no request is sent any more, and nobody waits

    def ask(self, body: Mapping[str, Any]) -> Reply:
        """Send a request until there is an answer.

        Raises
        ------
        RefusedError, UnansweredError, SpentError
            If there will be none; there is none yet; or the budget does not allow to ask.
        """
        why = ""
        for attempt in range(self._endpoint.retries + 1):
            self._wait_for_turn()
            if self.stopping.is_set():
                raise SpentError("stopped")
            reply, why, pause = self._attempt(body)
            if reply is not None:
                return reply
            if pause is not None and pause > _LONGEST_PAUSE:
                raise UnansweredError(f"{why}, to be asked again in {pause:.0f} seconds", for_long=True)
            if attempt < self._endpoint.retries:
                own = min(self._endpoint.backoff * 2.0 ** min(attempt, 64), _LONGEST_PAUSE)
                self.stopping.wait(own if pause is None else pause)
        raise UnansweredError(why)

    def close(self) -> None:
        """Give up the connections."""
        self._http.close()

    def _wait_for_turn(self) -> None:
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + self._gap
        self.stopping.wait(max(0.0, turn - now))

    def _attempt(self, body: Mapping[str, Any]) -> tuple[Reply | None, str, float | None]:
        """Send a request once: give the answer, or why there is none and how long to wait where that was said."""
        import httpx

        # a token is at least a byte, and the marks between messages are fewer tokens than the signs of JSON
        tokens = len(json.dumps(body.get("messages", []), ensure_ascii=False).encode()), most_tokens(body)
        reserved, start = self._budget.take(*tokens), time.monotonic()
        try:
            response = self._http.post(self._url, json=body)
        except httpx.HTTPError as error:
            if isinstance(error, httpx.ConnectError):  # nothing was sent
                self._budget.settle(reserved, 0, 0)
            return None, type(error).__name__, None
        status = response.status_code
        if status == 200:
            try:
                reply, used = _understood(response, time.monotonic() - start)
            except (ValueError, TypeError, KeyError, IndexError, AttributeError):
                return None, "an answer that is not the protocol's", None
            self._budget.settle(reserved, *(used or (tokens[0], tokens[1] or 0)))
            return reply, "", None
        if status < 500:
            self._budget.settle(reserved, 0, 0)
        if status >= 500 or status in {408, 429}:
            pause = _retry_after(response)
            if pause is not None and status == 429 and pause <= _LONGEST_PAUSE:
                with self._lock:
                    self._next = max(self._next, time.monotonic() + pause)
            return None, str(status), pause
        code = _error_code(response)
        raise RefusedError(status, "" if code == self._key else code)


def most_tokens(body: Mapping[str, Any]) -> int | None:
    """Give how long an answer may be; None where nothing limits it."""
    return body.get("max_completion_tokens", body.get("max_tokens"))


def _understood(response: Response, seconds: float) -> tuple[Reply, tuple[int, int] | None]:
    """Take apart an answer; of its use of tokens None where it is not told."""
    said: Any = _json(response)
    choice = said["choices"][0]
    message = choice["message"]
    content = message.get("content")
    reply = Reply(
        content if isinstance(content, str) else "",
        str(choice.get("finish_reason") or "stop"),
        bool(message.get("refusal")),
        _first_token(choice.get("logprobs")),
        round(seconds, 3),
    )
    return reply, _used(said.get("usage"))


def _json(response: Response) -> Any:
    """Read JSON; what is nested too deeply is none."""
    try:
        return response.json()
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _first_token(logprobs: Any) -> dict[str, float]:
    """Give log probabilities of the first token that is no blank; none in another shape: the answer counts without."""
    try:
        first: Any = next((token for token in logprobs["content"] if token["token"].strip()), {})
        top = {str(each["token"]): float(each["logprob"]) for each in first.get("top_logprobs") or []}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return {}
    return {token: value for token, value in top.items() if math.isfinite(value) and value <= _CERTAIN}


def _used(usage: Any) -> tuple[int, int] | None:
    """Give the tokens that were sent and received; None unless both are told as counts."""
    told = usage if isinstance(usage, Mapping) else {}
    counts = tuple(told.get(name) for name in ("prompt_tokens", "completion_tokens"))
    sent, received = (count if type(count) is int and 0 <= count <= _MOST_TOKENS else None for count in counts)
    return None if sent is None or received is None else (sent, received)


def _retry_after(response: Response) -> float | None:
    """Read how many seconds to wait: a number, or a date."""
    text = response.headers.get("Retry-After", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", text):
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _error_code(response: Response) -> str:
    """Give the word by which the protocol calls an error; nothing else of what the endpoint says."""
    try:
        error = _json(response)["error"]
        words = [error.get("code"), error.get("type")]
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""
    return next((word for word in words if isinstance(word, str) and _CODE.fullmatch(word)), "")


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
