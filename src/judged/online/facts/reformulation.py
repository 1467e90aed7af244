"""What a user did to the text of a query: the kinds of reformulation, by fixed rules.

The first rule that fits decides:

1. ``same``: equal once case, width, and blanks are folded (`judged.data.query_text.normalize_query`).
2. ``specialize``: words were added and none taken away; ``generalize``: the other way round.
3. ``spelling``: at most two edits (Levenshtein), at most a third of the letters in the words that differ, and no other
   digits.
4. ``substitute``: a word is shared; or at most three edits, at most that third; or the cosine of the character trigrams
   is one half or more.
5. ``new-topic``: nothing of the sort. It is no reformulation.

The kinds are those of Huang and Efthimiadis (CIKM 2009), their many made few. As theirs, the surest rule comes first,
and whole words go before letters: "vitamin" to "vitamin c" is two edits and no misspelling. Where we differ from a
plain "two edits":

- Edits are held against length, or "cat" to "dog", three edits, would be one query. A third is what search engines
  allow a fuzzy word: one edit from three letters on, two from six. Only words that are not shared count, or a long
  query would hide that "tv" became "pc" in it. So a slip in a word of two letters, or two in one of five, is not
  seen, and "cat" to "hat" is taken for a slip: without a dictionary, no rule tells which it is.
- Digits are never misspelt: "iphone 12" to "iphone 13" is another product (``substitute``).
- A token Jaccard of 0.3 or more, often named beside these rules, is not asked for: it implies a shared word.
- A text without words (empty, or punctuation) is a part of every text, and says nothing about it: ``new-topic``.

Words stand between blanks, punctuation at their ends left out. In Chinese and Japanese, which write no blanks, every
two neighboring characters are a word; there, and in Thai, Lao, Khmer, Burmese and Tibetan, a text that stands in
another as it is counts as its part. Words say nothing about meaning: "the" is shared by much, and a synonym shares
nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.query_text import normalize_query
from judged.online.engine import Relation, listed
from judged.online.log import AFTER_THE_CLICK, RETURNS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from judged.online.log import InteractionLog
    from judged.results.types import Table

    _Trigrams: TypeAlias = set[str]


KINDS = ("same", "spelling", "specialize", "generalize", "substitute", "new-topic")
"""All kinds."""

REFORMULATIONS = KINDS[1:5]
"""Those that reformulate: the text is another, and what is looked for is not."""

LONGEST = 1_000
"""Characters of a text, folded, that are looked at: so the work for a pair is bounded. ``same`` looks at all.

Texts that differ only beyond are ``substitute``."""

_SLIPS, _EDITS, _LEAST_COSINE = 2, 3, 0.5
_LETTERS_AN_EDIT = 3
_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡¿«»…–—‘’“”„‚‹›·•、。「」『』【】《》〈〉〔〕،؛؟।॥׀׃"  # noqa: RUF001
_PAIRED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")  # kana and Han
_UNDIVIDED = re.compile(_PAIRED.pattern[:-2] + "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]")  # Thai to Khmer beside them
_DIGIT = re.compile(r"\d")


def kind_of(before: str, after: str) -> str:
    """Say what was done to a query: one of `KINDS`. The rules are those of this module.

    Examples
    --------
    >>> kind_of("Red  Shoes", "red shoes"), kind_of("recieve", "receive"), kind_of("shoes", "red shoes")
    ('same', 'spelling', 'specialize')
    >>> kind_of("red shoes", "shoes"), kind_of("red shoes", "red boots"), kind_of("cat", "dog")
    ('generalize', 'substitute', 'new-topic')
    """
    if before == after:
        return "same"
    before, after = normalize_query(before), normalize_query(after)
    if before == after:
        return "same"
    before, after = before[:LONGEST], after[:LONGEST]
    return "substitute" if before == after else _kind(before, after)


def kinds_of(before: Any, after: Any) -> Any:
    """Say it of each pair of two columns of Arrow; null where a text is.

    Parameters
    ----------
    before, after
        (N,): texts.

    Returns
    -------
    found : pyarrow.Array
        (N,): `KINDS`.

    Raises
    ------
    ValueError
        If one is longer than the other.

    Examples
    --------
    >>> kinds_of(pa.array(["a b", "a", None]), pa.array(["a", "a", "b"])).to_pylist()
    ['generalize', 'same', None]
    """
    pairs = zip(before.to_pylist(), after.to_pylist(), strict=True)
    return pa.array([None if one is None or two is None else kind_of(one, two) for one, two in pairs], pa.string())


def _kind(before: str, after: str) -> str:
    """Apply the rules from the second on to texts that are folded and cut."""
    had, has = words_of(before), words_of(after)
    if not had or not has:
        return "new-topic"
    if had < has or (before in after and _undivided(before)):
        return "specialize"
    if has < had or (after in before and _undivided(after)):
        return "generalize"
    if shared := had & has:
        limit = min(_SLIPS, _room(before, after, had - shared, has - shared))
        return "spelling" if _misspelt(before, after, limit) else "substitute"
    if _are_strangers(*sorted((before, after), key=len)):
        return "new-topic"
    one, two = _trigrams(before), _trigrams(after)
    alike = len(one & two)
    if max(len(one), len(two)) - alike <= 3 * _EDITS:  # one edit touches three trigrams at most: else there are more
        limit = min(_EDITS, _room(before, after, had, has))
        if _misspelt(before, after, min(limit, _SLIPS)):
            return "spelling"
        if levenshtein(before, after, limit) <= limit:
            return "substitute"
    return "substitute" if alike and _similar(before, after, one, two) else "new-topic"


def _are_strangers(short: str, long: str) -> bool:
    """Say whether two texts have so few trigrams in common that neither cosine nor edits can make them alike.

    With p of the n trigrams of one text in the other: what they share of its counts' squares is at most p**2 / n, and
    the cosine at most the root of that; and an edit touches three trigrams, so that few edits leave n - 9 of them.
    """
    n, common = len(short) - 2, 0
    if n <= 3 * _EDITS + 3:
        return False
    for at in range(n):
        if short[at : at + 3] in long:
            common += 1
            if common**2 >= _LEAST_COSINE**2 * n:
                return False
    return True


def _undivided(text: str) -> bool:
    return not text.isascii() and _UNDIVIDED.search(text) is not None


def _room(before: str, after: str, lost: set[str], added: set[str]) -> int:
    """Give how many edits would be few: a third of the letters that differ, or of all where none of the words does."""
    letters = max(sum(map(len, lost)), sum(map(len, added))) or max(len(before), len(after))
    return letters // _LETTERS_AN_EDIT


def _misspelt(before: str, after: str, limit: int) -> bool:
    """Say whether two texts are so few edits apart, but some, and none of a digit."""
    if limit == 0 or abs(len(before) - len(after)) > limit or _DIGIT.findall(before) != _DIGIT.findall(after):
        return False
    return 0 < levenshtein(before, after, limit) <= limit


def _similar(before: str, after: str, one: _Trigrams, two: _Trigrams) -> bool:
    """Say whether the cosine of texts with a common trigram is large enough; mostly a bound tells that it is not."""
    first, second = len(before) - 2, len(after) - 2
    # of all that stand there, so many are repetitions, and none can stand there more often than once and all of them
    bound = (len(one & two) + first - len(one)) * (1 + second - len(two)) / math.sqrt(first * second)
    return bound >= _LEAST_COSINE and trigram_cosine(before, after) >= _LEAST_COSINE


def words_of(text: str) -> set[str]:
    """Give the different words of a text that is folded.

    >>> sorted(words_of("what is c++, and why?")), sorted(words_of("東京天気"))
    (['and', 'c', 'is', 'what', 'why'], ['京天', '天気', '東京'])
    """
    if text.isascii() and text.replace(" ", "").isalnum():  # nothing to strip: by far the most
        return set(text.split())
    words = {part.strip(_PUNCTUATION) for part in text.split()}
    if not text.isascii() and _PAIRED.search(text):
        words = {piece for word in words for piece in _pieces(word)}
    words.discard("")
    return words


def _pieces(word: str) -> Iterator[str]:
    """Cut runs of Chinese and Japanese characters into all pairs of neighbors; give what stands between as it is."""
    end = 0
    for run in _PAIRED.finditer(word):
        yield from filter(None, [word[end : run.start()].strip(_PUNCTUATION)])
        text, end = run[0], run.end()
        yield from (text[at : at + 2] for at in range(max(len(text) - 1, 1)))
    yield from filter(None, [word[end:].strip(_PUNCTUATION)])


def levenshtein(before: str, after: str, limit: int | None = None) -> int:
    """Count the least insertions, deletions and substitutions of one character each that turn one text into the other.

    Ukkonen's way (Information and Control 1985): how far each diagonal is reached with so many edits. Time is
    O(length x limit) at worst, memory O(limit).

    Parameters
    ----------
    before, after
        Texts.
    limit
        Give up beyond it; None: never.

    Returns
    -------
    edits : int
        The distance; ``limit + 1`` where it is larger than the limit.

    Examples
    --------
    >>> levenshtein("kitten", "sitting"), levenshtein("kitten", "sitting", 1)
    (3, 2)
    """
    rows, columns = len(before), len(after)
    limit = max(rows, columns) if limit is None else limit
    last = columns - rows
    # each edit makes at most one kind of character vanish and one appear
    if abs(last) > limit or len(set(before) ^ set(after)) > 2 * limit:
        return limit + 1
    reached: dict[int, int] = {}
    for edits in range(limit + 1):
        left = limit - edits  # diagonals from which the last one is no longer reached are not walked
        further: dict[int, int] = {}
        for diagonal in range(max(-edits, last - left), min(edits, last + left) + 1):
            row = max(
                reached.get(diagonal - 1, -1),  # insertion
                reached.get(diagonal, -1) + 1,  # substitution
                reached.get(diagonal + 1, -2) + 1,  # deletion
            )
            row = _slid(before, after, min(row, rows, columns - diagonal), diagonal)
            if diagonal == last and row >= rows:
                return edits
            further[diagonal] = row
        reached = further
    return limit + 1


def _slid(before: str, after: str, row: int, diagonal: int) -> int:
    """Go down a diagonal while the characters are equal."""
    end = min(len(before), len(after) - diagonal)
    while row < end and before[row] == after[row + diagonal]:
        row += 1
    return row


def trigram_cosine(before: str, after: str) -> float:
    """Give the cosine of the angle between the counts of character trigrams: 0 to 1; 0 for a text that has none.

    >>> round(trigram_cosine("abcd", "abce"), 12), trigram_cosine("ab", "ab")
    (0.5, 0.0)
    """
    one, two = _trigrams(before), _trigrams(after)
    if not one or not two:
        return 0.0
    if len(one) == len(before) - 2 and len(two) == len(after) - 2:  # none is there twice
        return len(one & two) / math.sqrt(len(one) * len(two))
    first, second = (Counter(text[at : at + 3] for at in range(len(text) - 2)) for text in (before, after))
    product = sum(first[trigram] * second[trigram] for trigram in one & two)
    lengths = sum(n * n for n in first.values()) * sum(n * n for n in second.values())
    return product / math.sqrt(lengths) if product else 0.0


def _trigrams(text: str) -> _Trigrams:
    return {text[at : at + 3] for at in range(len(text) - 2)}


def click_facts(log: InteractionLog) -> Relation:
    """Give one row a click on a page, a repeated click on one result too.

    A visit ends when the user is seen on a result page of the same session: asks for one, clicks, sees or hovers over a
    result. What is done on the opened result (a heartbeat, a purchase) does not end it. Nor does it end that a result
    page is left: browsers say so when a result opens in its place. Only an exit that names what was opened does. Where
    nothing follows, the visit lasted at least until its last heartbeat: it is censored, and never dropped.

    Returns
    -------
    Relation
        ``serp, session, user, time_ms, object_id, rank``, and ``dwell_ms`` (observed, or the time until which it was
        watched, at least 0; null without a clock) with ``ended`` (1: observed, 0: censored).
    """
    clicks = f"""
        SELECT serp, session, "user", time_ms, object_id, rank, dwell_ms FROM {log.event}
        WHERE action = 'click' AND serp IS NOT NULL"""
    if not log.has_time:
        return log.engine.keep(
            f"""
            SELECT serp, session, "user", time_ms, object_id, rank, CAST(NULL AS BIGINT) AS dwell_ms,
                CAST(0 AS BIGINT) AS ended
            FROM ({clicks})""",
            "click",
        )
    return log.engine.keep(
        f"""
        WITH click AS ({clicks}),
        opened AS (SELECT session, min(time_ms) AS first_ms FROM click GROUP BY session),
        sign AS (
            SELECT e.session, e.time_ms FROM {log.event} AS e JOIN opened AS o ON e.session = o.session
            WHERE e.time_ms >= o.first_ms
                AND (e.action IN {listed(RETURNS)} OR (e.action = 'page_exit' AND e.object_id IS NOT NULL))
            UNION ALL
            SELECT p.session, p.time_ms FROM {log.serp} AS p JOIN opened AS o ON p.session = o.session
            WHERE p.time_ms >= o.first_ms),
        followed AS (  -- of signs at one time the last one alone is followed by a later one
            SELECT session, time_ms, next_ms FROM (
                SELECT session, time_ms, lead(time_ms) OVER (PARTITION BY session ORDER BY time_ms) AS next_ms
                FROM sign)
            WHERE next_ms > time_ms),
        watched AS (
            SELECT session, max(time_ms) AS watched_ms FROM {log.event}
            WHERE action IN {listed(AFTER_THE_CLICK)} GROUP BY session)
        SELECT c.serp, c.session, c."user", c.time_ms, c.object_id, c.rank,
            coalesce(c.dwell_ms, f.next_ms - c.time_ms, greatest(w.watched_ms - c.time_ms, 0), 0) AS dwell_ms,
            CAST(CASE WHEN c.dwell_ms IS NOT NULL OR f.next_ms IS NOT NULL THEN 1 ELSE 0 END AS BIGINT) AS ended
        FROM click AS c
        LEFT JOIN followed AS f ON f.session = c.session AND f.time_ms = c.time_ms
        LEFT JOIN watched AS w ON w.session = c.session""",
        "click",
    )


PAIRS_AT_ONCE = 50_000
"""So many pairs of texts are Python objects at a time."""


def begin_next_queries(serp: Relation, *, within_ms: int) -> Callable[[], Relation]:
    """Begin to tell how the next query of a session differs from each page's.

    Texts are told apart in a thread, while the database can do other things.

    Parameters
    ----------
    serp
        Pages: the typed table.
    within_ms
        Only what comes so soon is told apart by its text. Repeats are known however late they come.

    Returns
    -------
    finish : callable
        Waits for it, and gives one row a page that a first page follows, strictly later in its session: ``serp``;
        ``next_serp``, of several at that millisecond the one with the smallest key; ``gap_ms``, from page to page;
        ``kind``, one of `judged.online.facts.reformulation.KINDS`, null where one of the two has no text or the next
        came too late; ``again``, true for an unfiltered first page whose text the next one of these has too.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from judged.online.engine import Engine
    >>> pages = {"serp": [1, 2, 3], "session": [7, 7, 7], "time_ms": [0, 5_000, 9_000], "page": [1, 2, 1]}
    >>> pages |= {"filtered": [False] * 3, "query_norm": ["shoes", "shoes", "red shoes"]}
    >>> found = begin_next_queries(Engine().register(pa.table(pages)), within_ms=300_000)()
    >>> found.engine.rows(f"FROM {found} ORDER BY serp")
    [{'serp': 1, 'next_serp': 3, 'gap_ms': 9000, 'kind': 'specialize', 'again': False},
     {'serp': 2, 'next_serp': 3, 'gap_ms': 4000, 'kind': 'specialize', 'again': False}]
    """
    engine = serp.engine
    pairs = engine.keep(
        f"""
        WITH asked AS (
            SELECT session, time_ms, min(CASE WHEN page = 1 THEN serp END) AS opening,
                min(CASE WHEN page = 1 AND NOT filtered THEN serp END) AS plain
            FROM {serp} GROUP BY session, time_ms),
        ahead AS (
            SELECT session, time_ms, first_value(opening IGNORE NULLS) OVER later AS next_serp,
                first_value(plain IGNORE NULLS) OVER later AS next_plain
            FROM asked
            WINDOW later AS (
                PARTITION BY session ORDER BY time_ms ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))
        SELECT p.serp, a.next_serp, n.time_ms - p.time_ms AS gap_ms, p.query_norm AS was, n.query_norm AS became,
            p.page = 1 AND NOT p.filtered AND coalesce(p.query_norm = u.query_norm, false) AS again
        FROM {serp} AS p
        JOIN ahead AS a ON a.session = p.session AND a.time_ms = p.time_ms
        JOIN {serp} AS n ON n.serp = a.next_serp
        LEFT JOIN {serp} AS u ON u.serp = a.next_plain""",
        "next_query",
    )
    texts = engine.arrow(f"SELECT DISTINCT was, became FROM {pairs} WHERE was <> became AND gap_ms <= {within_ms}")
    worker = ThreadPoolExecutor(1)
    kinds = worker.submit(_kinds, texts)
    worker.shutdown(wait=False)
    return lambda: engine.query(f"""
        SELECT p.serp, p.next_serp, p.gap_ms,
            CASE WHEN p.was = p.became THEN 'same' WHEN p.gap_ms <= {within_ms} THEN k.kind END AS kind, p.again
        FROM {pairs} AS p
        LEFT JOIN {engine.register(kinds.result())} AS k ON k.was = p.was AND k.became = p.became""")


def _kinds(texts: Any) -> Table:
    """Give the kind of each pair of texts."""
    pieces = [
        pa.table({**{name: batch[name] for name in ("was", "became")}, "kind": kinds_of(batch["was"], batch["became"])})
        for batch in texts.to_batches(max_chunksize=PAIRS_AT_ONCE)
    ]
    return pa.concat_tables(pieces) if pieces else texts.append_column("kind", pa.array([], pa.string()))
