"""Client for an endpoint with OpenAI's chat protocol: configuration, retries, rate limits, and budget.

Error messages never quote requests, replies, or the key: an endpoint can repeat them in its errors.
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
_RESERVED_FIELDS = frozenset({"messages", "model", "n", "stream"})  # fields of a request that `body` must not set
_ERROR_CODE = re.compile(r"[a-z]{1,24}(_[a-z]{1,24}){0,5}")  # words of the protocol; a key or a text does not match
_MAX_TOKENS = 10**12  # of one request; larger numbers are not counts
_MAX_LOGPROB = 0.001  # log probabilities are at most 0; the rest is rounding
_LONGEST_PAUSE = 120.0  # seconds; for longer pauses, stop with an error
_FIELD_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,), "int": (int,), "float": (int, float), "float | None": (int, float), "tuple[str, ...]": (list, tuple),
    "Mapping[str, Any]": (Mapping,),
}  # fmt: skip


class RefusedError(JudgedError):
    """The endpoint rejects this request, and would reject it again."""

    def __init__(self, status: int, code: str) -> None:
        self.status = status
        super().__init__(f"{status} {code}".strip())


class UnansweredError(JudgedError):
    """No reply after all attempts, or the endpoint announces a long pause."""

    def __init__(self, reason: str, *, for_long: bool = False) -> None:
        self.for_long = for_long
        super().__init__(reason)


class Reply(NamedTuple):
    """Reply of a model."""

    content: str
    finish: str = "stop"
    refused: bool = False  # by the protocol, not in the text
    top: Mapping[str, float] = {}  # log probabilities of the first nonblank token
    seconds: float | None = None


@dataclass(frozen=True)
class Endpoint:
    """Endpoint of a model and its settings.

    Parameters
    ----------
    base_url
        URL before ``/chat/completions``; redirects are not followed.
    model
        Name of the model at the endpoint. Replies are stored under it: use a different name for a different model.
    key_variable
        Name of the environment variable with the API key; empty if no key is needed.
    requests_per_minute
        Rate limit; 0 for none. After a status of 429, the client waits in any case.
    workers
        Number of concurrent requests.
    timeout, retries, backoff
        Seconds until a request times out; number of retries after a timeout, a broken connection, or a status of 408,
        429, or 5xx; seconds before the first retry, doubled each time, up to 120.
    temperature, seed, max_tokens, logprobs
        Fields of each request. `logprobs` is the number of alternatives for the first token, 0 for none. Repeats have
        their own seed.
    price_in, price_out
        Prices of a million tokens, sent and received; None: unknown.
    body, without
        More fields of a request, and names of the fields above that the endpoint does not accept.

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
        for setting in fields(self):
            value = getattr(self, setting.name)
            has_type = isinstance(value, _FIELD_TYPES[str(setting.type)]) and not isinstance(value, bool)
            if not (has_type or (value is None and "None" in str(setting.type))):
                raise InputError(f"`{setting.name}` of the endpoint must be {setting.type}", fix="correct the type")
        try:
            parts = urlsplit(self.base_url)
            is_usable = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
        except ValueError:  # brackets, or a port that is not a number
            parts, is_usable = urlsplit(""), False
        # A URL with credentials would end up in messages and results.
        if not is_usable or "@" in parts.netloc or parts.query or parts.fragment:
            fix = "use a URL without query and credentials, and put the API key into an environment variable"
            raise InputError("`base_url` must be an http:// or https:// URL with a host", fix=fix)
        if self.key_variable and not _VARIABLE.fullmatch(self.key_variable):
            fix = "use the name of the variable, not the API key itself"
            raise InputError("`key_variable` must be the name of an environment variable", fix=fix)
        nonnegative = (self.retries, self.requests_per_minute, self.backoff, self.logprobs)
        amounts = (*nonnegative, self.price_in or 0, self.price_out or 0, self.timeout, self.temperature)
        is_too_small = min(self.workers, self.max_tokens) < 1 or self.timeout <= 0
        if not self.model or is_too_small or not all(map(math.isfinite, amounts)) or min(amounts) < 0:
            fix = (
                "set `model`, use at least 1 for `workers` and `max_tokens`, a `timeout` above 0, and finite numbers"
                " of at least 0 for all other settings"
            )
            raise InputError("a setting of the endpoint is missing or out of range", fix=fix)
        if reserved := sorted(_RESERVED_FIELDS & set(self.body)):
            fix = "remove these fields: judged sets them itself"
            raise InputError(f"`body` of the endpoint must not set {', '.join(reserved)}", fix=fix)
        limits = [self.body[name] for name in ("max_tokens", "max_completion_tokens") if name in self.body]
        if any(type(limit) is not int or limit < 1 for limit in limits):
            raise InputError("token limits in `body` must be positive integers", fix="use max_tokens = 16, for example")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a TOML file whose keys are the parameters.

        Raises
        ------
        InputError
            If the file cannot be read, or a key is unknown or missing. The message contains no value of the file.
        """
        settings = parse_toml(read_toml(path), str(path))
        allowed = {setting.name for setting in fields(cls)}
        if wrong_names := [*(set(settings) - allowed), *({"base_url", "model"} - set(settings))]:
            fix = (
                f"use {', '.join(sorted(allowed))}; put the API key into the environment variable whose name is in"
                " `key_variable`"
            )
            raise InputError(f"unknown or missing settings: {', '.join(sorted(wrong_names))}", fix=fix, path=str(path))
        if isinstance(settings.get("without"), list):
            settings["without"] = tuple(settings["without"])
        with add_path_to_errors(path):
            return cls(**settings)

    @property
    def host(self) -> str:
        """Host and port of the endpoint."""
        return urlsplit(self.base_url).netloc

    @property
    def priced(self) -> bool:
        """Whether both prices are known."""
        return self.price_in is not None and self.price_out is not None

    def request(self, messages: list[dict[str, str]], repeat: int = 0, max_tokens: int = 0) -> dict[str, Any]:
        """Build the body of a request."""
        fields: dict[str, Any] = {
            "model": self.model, "messages": messages, "temperature": self.temperature, "seed": self.seed + repeat,
            "max_tokens": max(max_tokens, self.max_tokens),
        }  # fmt: skip
        if self.logprobs:
            fields |= {"logprobs": True, "top_logprobs": self.logprobs}
        return {name: value for name, value in fields.items() if name not in self.without} | dict(self.body)

    def key(self) -> str:
        """Read the API key from the environment.

        Raises
        ------
        InputError
            If the variable is empty or has characters that are not allowed in a header.
        """
        key = os.environ.get(self.key_variable, "").strip() if self.key_variable else ""
        if self.key_variable and not (key and key.isascii() and key.isprintable()):
            fix = "set the variable: export NAME=KEY"
            raise InputError("the environment variable that `key_variable` names must contain the API key", fix=fix)
        return key


class Client:
    """Sends requests from several threads, within a budget and the rate limit of the endpoint."""

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
        self.stopping = Event()  # set: send no more requests, and do not wait

    def send(self, body: Mapping[str, Any]) -> Reply:
        """Send a request, with retries, and return the reply.

        Raises
        ------
        RefusedError, UnansweredError, SpentError
            If the request is rejected; there is no reply after all retries; or the budget does not allow the request.
        """
        reason = ""
        # Each attempt waits for its turn, so retries also respect the rate limit.
        for attempt in range(self._endpoint.retries + 1):
            self._wait_for_turn()
            if self.stopping.is_set():
                raise SpentError("stopped")
            reply, reason, pause = self._attempt(body)
            if reply is not None:
                return reply
            if pause is not None and pause > _LONGEST_PAUSE:
                raise UnansweredError(
                    f"{reason}, and the endpoint requests a pause of {pause:.0f} seconds", for_long=True
                )
            if attempt < self._endpoint.retries:
                backoff = min(self._endpoint.backoff * 2.0 ** min(attempt, 64), _LONGEST_PAUSE)
                self.stopping.wait(backoff if pause is None else pause)
        raise UnansweredError(reason)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _wait_for_turn(self) -> None:
        with self._lock:
            now = time.monotonic()
            # Reserve a time slot under the lock, and wait outside of it.
            turn = max(now, self._next)
            self._next = turn + self._gap
        self.stopping.wait(max(0.0, turn - now))

    def _attempt(self, body: Mapping[str, Any]) -> tuple[Reply | None, str, float | None]:
        """Send a request once; return the reply, or the reason for its absence and the requested pause in seconds."""
        import httpx

        # upper bound: a token is at least a byte, and message separators are fewer tokens than JSON has characters
        tokens = len(json.dumps(body.get("messages", []), ensure_ascii=False).encode()), token_limit(body)
        reserved, start = self._budget.reserve(*tokens), time.monotonic()
        try:
            response = self._http.post(self._url, json=body)
        except httpx.HTTPError as error:
            # For other errors, for example timeouts, the endpoint may still charge for the request.
            if isinstance(error, httpx.ConnectError):  # no request was sent
                self._budget.settle(reserved, 0, 0)
            return None, type(error).__name__, None
        status = response.status_code
        if status == 200:
            try:
                reply, usage = _parse_response(response, time.monotonic() - start)
            except (ValueError, TypeError, KeyError, IndexError, AttributeError):
                return None, "the response does not have the format of OpenAI's chat API", None
            self._budget.settle(reserved, *(usage or (tokens[0], tokens[1] or 0)))
            return reply, "", None
        # A rejected request is not charged; after a server error it may be.
        if status < 500:
            self._budget.settle(reserved, 0, 0)
        if status >= 500 or status in {408, 429}:
            pause = _retry_after(response)
            if pause is not None and status == 429 and pause <= _LONGEST_PAUSE:
                with self._lock:
                    self._next = max(self._next, time.monotonic() + pause)
            return None, str(status), pause
        # The key could look like an error code, so compare it.
        code = _error_code(response)
        raise RefusedError(status, "" if code == self._key else code)


def token_limit(body: Mapping[str, Any]) -> int | None:
    """Return the maximum number of tokens of a reply; None without a limit."""
    return body.get("max_completion_tokens", body.get("max_tokens"))


def _parse_response(response: Response, seconds: float) -> tuple[Reply, tuple[int, int] | None]:
    """Return the reply and its token usage, or None for the usage if it is missing."""
    document: Any = _parse_json(response)
    choice = document["choices"][0]
    message = choice["message"]
    content = message.get("content")
    reply = Reply(
        content if isinstance(content, str) else "",
        str(choice.get("finish_reason") or "stop"),
        bool(message.get("refusal")),
        _first_token_logprobs(choice.get("logprobs")),
        round(seconds, 3),
    )
    return reply, _token_usage(document.get("usage"))


def _parse_json(response: Response) -> Any:
    """Parse JSON; raise ValueError if it is nested too deeply."""
    try:
        return response.json()
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _first_token_logprobs(logprobs: Any) -> dict[str, float]:
    """Return log probabilities of the first nonblank token; empty if malformed, as the reply is valid without them."""
    try:
        first: Any = next((token for token in logprobs["content"] if token["token"].strip()), {})
        top = {str(token["token"]): float(token["logprob"]) for token in first.get("top_logprobs") or []}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return {}
    return {token: value for token, value in top.items() if math.isfinite(value) and value <= _MAX_LOGPROB}


def _token_usage(usage: Any) -> tuple[int, int] | None:
    """Return the numbers of tokens sent and received; None unless both are valid counts."""
    fields = usage if isinstance(usage, Mapping) else {}
    counts = tuple(fields.get(name) for name in ("prompt_tokens", "completion_tokens"))
    sent, received = (count if type(count) is int and 0 <= count <= _MAX_TOKENS else None for count in counts)
    return None if sent is None or received is None else (sent, received)


def _retry_after(response: Response) -> float | None:
    """Parse Retry-After, a number or a date, to seconds."""
    text = response.headers.get("Retry-After", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", text):
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _error_code(response: Response) -> str:
    """Return the protocol's code of an error, and no other text of the endpoint."""
    try:
        error = _parse_json(response)["error"]
        words = [error.get("code"), error.get("type")]
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""
    return next((word for word in words if isinstance(word, str) and _ERROR_CODE.fullmatch(word)), "")


_MILLION = 1_000_000


class SpentError(JudgedError):
    """The next request might exceed the budget, or sending was stopped."""


@dataclass
class Budget:
    """Requests and money of one run. Each attempt counts as a request.

    A pending request counts with its maximum cost, and after the reply with the usage that the endpoint reports.
    """

    endpoint: Endpoint
    max_calls: int | None = None
    max_money: float | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    # reserved for pending requests, in tokens: subtracting money would leave rounding errors
    _reserved_in: int = 0
    _reserved_out: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        if self.max_money is not None and not self.endpoint.priced:
            fix = "set `price_in` and `price_out`, the prices per million tokens, in the endpoint file"
            raise InputError("a maximum cost requires the token prices of the endpoint", fix=fix)
        if min(self.max_calls or 0, self.max_money or 0) < 0 or math.isnan(self.max_money or 0):
            raise InputError(
                "the budgets (requests and cost) must be 0 or more", fix="use --budget-calls 100, for example"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the lock, which cannot be pickled."""
        return {**vars(self), "_lock": None}

    @property
    def money(self) -> float:
        """Money spent and reserved, in the unit of the prices; 0 if prices are unknown."""
        return self.cost(self.tokens_in + self._reserved_in, self.tokens_out + self._reserved_out)

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """Compute the cost of tokens; 0 if prices are not known."""
        endpoint = self.endpoint
        return (tokens_in * (endpoint.price_in or 0) + tokens_out * (endpoint.price_out or 0)) / _MILLION

    def reserve(self, tokens_in: int, tokens_out: int | None) -> tuple[int, int]:
        """Reserve a request and its maximum tokens before it is sent; return these tokens.

        Raises
        ------
        SpentError
            If it exceeds the budget.
        InputError
            If money is limited but the tokens of a reply are not.
        """
        if tokens_out is None and self.max_money is not None:
            raise InputError(
                "a maximum cost requires a limit of output tokens", fix="set max_tokens in the endpoint file"
            )
        reserved = tokens_in, tokens_out or 0
        with self._lock:
            if self.max_calls is not None and self.calls >= self.max_calls:
                raise SpentError("the budget of requests is exhausted")
            if self.max_money is not None and self.money + self.cost(*reserved) > self.max_money:
                raise SpentError("the next request might exceed the budget")
            self.calls += 1
            self._reserved_in += reserved[0]
            self._reserved_out += reserved[1]
        return reserved

    def settle(self, reserved: tuple[int, int], tokens_in: int, tokens_out: int) -> None:
        """Replace reserved tokens with the tokens that were used."""
        with self._lock:
            self._reserved_in -= reserved[0]
            self._reserved_out -= reserved[1]
            self.tokens_in += tokens_in
            self.tokens_out += tokens_out
