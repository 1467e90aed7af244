"""Kinds of query reformulation, by fixed rules.

The first rule that fits decides:

1. ``same``: equal after case, width, and blanks are normalized (`judged.data.query_text.normalize_query`).
2. ``specialize``: words were added and none removed; ``generalize``: the opposite.
3. ``spelling``: at most two edits (Levenshtein), at most a third of the letters in the words that differ, and the
   same digits.
4. ``substitute``: a shared word; or at most three edits, and at most that third; or a cosine of the character trigrams
   of at least 0.5.
5. ``new-topic``: everything else. It is not a reformulation.

The kinds are a coarser version of those of Huang and Efthimiadis (CIKM 2009). As there, the most certain rule comes
first, and rules about words precede rules about letters: "vitamin" to "vitamin c" is two edits but no misspelling.
Differences from a plain limit of two edits:

- Edits are relative to length. Otherwise "cat" and "dog", three edits, would be one query. One third is the usual
  limit of fuzzy search: one edit from three letters on, two from six. Only words that are not shared count, because in
  a long query "tv" to "pc" would otherwise be a small change. Slips in words of two letters, or two slips in one of
  five, are therefore missed, and "cat" to "hat" counts as a slip: only a dictionary could tell.
- Digits are never misspelled: "iphone 12" to "iphone 13" is another product (``substitute``).
- The common rule of a token Jaccard of at least 0.3 is redundant: it implies a shared word.
- A text without words (empty, or punctuation) is contained in every text, so it is ``new-topic``.

Words are separated by blanks, without punctuation at their ends. In Chinese and Japanese, which have no blanks, each
pair of neighboring characters is a word. In these and in Thai, Lao, Khmer, Burmese and Tibetan, a text that contains
another is a specialization of it. Words have no meaning here: "the" is shared by many queries, a synonym by none.
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
from judged.online.engine import Relation, sql_list
from judged.online.log import ACTIONS_ON_RESULT, RETURN_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from judged.online.log import InteractionLog
    from judged.results.types import Table

    _Trigrams: TypeAlias = set[str]


KINDS = ("same", "spelling", "specialize", "generalize", "substitute", "new-topic")
"""All kinds of reformulation, including none."""

REFORMULATIONS = KINDS[1:5]
"""Kinds that reformulate: the text changes and the information need does not."""

MAX_CHARACTERS = 1_000
"""Characters of a normalized text that are compared, except for ``same``. It limits the work for a pair.

Texts that differ only after them are ``substitute``."""

_MAX_SLIPS, _MAX_EDITS, _MIN_COSINE = 2, 3, 0.5
_LETTERS_PER_EDIT = 3
_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡¿«»…–—‘’“”„‚‹›·•、。「」『』【】《》〈〉〔〕،؛؟।॥׀׃"  # noqa: RUF001
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")  # kana and Han
_WITHOUT_BLANKS = re.compile(_CJK.pattern[:-2] + "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]")  # and Thai to Khmer
_DIGIT = re.compile(r"\d")


def reformulation_kind(before: str, after: str) -> str:
    """Return the kind of a reformulation, one of `KINDS`, by the rules of this module.

    Examples
    --------
    >>> [reformulation_kind(*texts) for texts in (("Red  Shoes", "red shoes"), ("recieve", "receive"))]
    ['same', 'spelling']
    >>> [reformulation_kind("red shoes", text) for text in ("new red shoes", "shoes", "red boots", "cat")]
    ['specialize', 'generalize', 'substitute', 'new-topic']
    """
    if before == after:
        return "same"
    before, after = normalize_query(before), normalize_query(after)
    if before == after:
        return "same"
    before, after = before[:MAX_CHARACTERS], after[:MAX_CHARACTERS]
    return "substitute" if before == after else _kind(before, after)


def reformulation_kinds(before: Any, after: Any) -> Any:
    """Return the kinds of the reformulations in two Arrow columns; null if a text is null.

    Parameters
    ----------
    before, after
        (N,): texts.

    Returns
    -------
    kinds : pyarrow.Array
        (N,): `KINDS`.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> reformulation_kinds(pa.array(["a b", "a", None]), pa.array(["a", "a", "b"])).to_pylist()
    ['generalize', 'same', None]
    """
    pairs = zip(before.to_pylist(), after.to_pylist(), strict=True)
    kinds = [None if None in pair else reformulation_kind(*pair) for pair in pairs]
    return pa.array(kinds, pa.string())


def _kind(before: str, after: str) -> str:
    # Rules 2 to 5, for normalized texts.
    old_words, new_words = words_of(before), words_of(after)
    if not old_words or not new_words:
        return "new-topic"
    if old_words < new_words or (before in after and _has_no_blanks(before)):
        return "specialize"
    if new_words < old_words or (after in before and _has_no_blanks(after)):
        return "generalize"
    if shared := old_words & new_words:
        limit = min(_MAX_SLIPS, _edit_limit(before, after, old_words - shared, new_words - shared))
        return "spelling" if _is_misspelling(before, after, limit) else "substitute"
    if _are_unrelated(*sorted((before, after), key=len)):
        return "new-topic"
    old_trigrams, new_trigrams = _trigrams(before), _trigrams(after)
    shared_count = len(old_trigrams & new_trigrams)
    # One edit changes at most three trigrams, so texts with fewer shared ones need more edits.
    if max(len(old_trigrams), len(new_trigrams)) - shared_count <= 3 * _MAX_EDITS:
        limit = min(_MAX_EDITS, _edit_limit(before, after, old_words, new_words))
        if _is_misspelling(before, after, min(limit, _MAX_SLIPS)):
            return "spelling"
        if levenshtein(before, after, limit) <= limit:
            return "substitute"
    if shared_count and _is_similar(before, after, old_trigrams, new_trigrams):
        return "substitute"
    return "new-topic"


def _are_unrelated(short: str, long: str) -> bool:
    """Whether texts share so few trigrams that neither their cosine nor their edit distance can be close enough."""
    n, shared_count = len(short) - 2, 0
    if n <= 3 * _MAX_EDITS + 3:
        return False
    # If p of the n trigrams of `short` are in `long`, the cosine is at most sqrt(p^2 / n). And as an edit changes
    # three trigrams, texts with few edits share at least n - 9.
    for i in range(n):
        if short[i : i + 3] in long:
            shared_count += 1
            if shared_count**2 >= _MIN_COSINE**2 * n:
                return False
    return True


def _has_no_blanks(text: str) -> bool:
    return not text.isascii() and _WITHOUT_BLANKS.search(text) is not None


def _edit_limit(before: str, after: str, removed: set[str], added: set[str]) -> int:
    letters = max(sum(map(len, removed)), sum(map(len, added))) or max(len(before), len(after))
    return letters // _LETTERS_PER_EDIT


def _is_misspelling(before: str, after: str, limit: int) -> bool:
    if limit == 0 or abs(len(before) - len(after)) > limit or _DIGIT.findall(before) != _DIGIT.findall(after):
        return False
    return 0 < levenshtein(before, after, limit) <= limit


def _is_similar(before: str, after: str, old_trigrams: _Trigrams, new_trigrams: _Trigrams) -> bool:
    old_count, new_count = len(before) - 2, len(after) - 2
    # Upper bound of the cosine, which avoids most computations. The dot product is at most the occurrences of shared
    # trigrams in `before` times the most occurrences of one in `after`. A norm is at least the root of the count.
    shared_occurrences = len(old_trigrams & new_trigrams) + old_count - len(old_trigrams)
    bound = shared_occurrences * (1 + new_count - len(new_trigrams)) / math.sqrt(old_count * new_count)
    return bound >= _MIN_COSINE and trigram_cosine(before, after) >= _MIN_COSINE


def words_of(text: str) -> set[str]:
    """Return the distinct words of a normalized text.

    >>> sorted(words_of("what is c++, and why?")), sorted(words_of("東京天気"))
    (['and', 'c', 'is', 'what', 'why'], ['京天', '天気', '東京'])
    """
    if text.isascii() and text.replace(" ", "").isalnum():  # the usual case, which needs no stripping
        return set(text.split())
    words = {part.strip(_PUNCTUATION) for part in text.split()}
    if not text.isascii() and _CJK.search(text):
        words = {part for word in words for part in _split_cjk(word)}
    words.discard("")
    return words


def _split_cjk(word: str) -> Iterator[str]:
    """Yield all pairs of neighbors in runs of Chinese and Japanese characters, and the text between runs unchanged."""
    end = 0
    for match in _CJK.finditer(word):
        yield from filter(None, [word[end : match.start()].strip(_PUNCTUATION)])
        text, end = match[0], match.end()
        yield from (text[i : i + 2] for i in range(max(len(text) - 1, 1)))
    yield from filter(None, [word[end:].strip(_PUNCTUATION)])


def levenshtein(before: str, after: str, limit: int | None = None) -> int:
    """Compute the Levenshtein distance: the least number of insertions, deletions and substitutions of a character.

    Method of Ukkonen (Information and Control 1985): the furthest row on each diagonal for each number of edits. The
    time is O(length x limit) at worst, the memory O(limit).

    Parameters
    ----------
    before, after
        Texts.
    limit
        Largest distance of interest. None: no limit.

    Returns
    -------
    edits : int
        Distance, or ``limit + 1`` if it is larger than `limit`.

    Examples
    --------
    >>> levenshtein("kitten", "sitting"), levenshtein("kitten", "sitting", 1)
    (3, 2)
    """
    rows, columns = len(before), len(after)
    limit = max(rows, columns) if limit is None else limit
    end_diagonal = columns - rows
    # One edit removes at most one distinct character and adds at most one.
    if abs(end_diagonal) > limit or len(set(before) ^ set(after)) > 2 * limit:
        return limit + 1
    furthest: dict[int, int] = {}
    for edits in range(limit + 1):
        remaining = limit - edits  # a diagonal that is more than this away from the last cannot reach it any more
        next_furthest: dict[int, int] = {}
        for diagonal in range(max(-edits, end_diagonal - remaining), min(edits, end_diagonal + remaining) + 1):
            row = max(
                furthest.get(diagonal - 1, -1),  # insertion
                furthest.get(diagonal, -1) + 1,  # substitution
                furthest.get(diagonal + 1, -2) + 1,  # deletion
            )
            row = _follow_matches(before, after, min(row, rows, columns - diagonal), diagonal)
            if diagonal == end_diagonal and row >= rows:
                return edits
            next_furthest[diagonal] = row
        furthest = next_furthest
    return limit + 1


def _follow_matches(before: str, after: str, row: int, diagonal: int) -> int:
    end = min(len(before), len(after) - diagonal)
    while row < end and before[row] == after[row + diagonal]:
        row += 1
    return row


def trigram_cosine(before: str, after: str) -> float:
    """Compute the cosine of two texts' counts of character trigrams, from 0 to 1; 0 if a text has no trigrams.

    >>> round(trigram_cosine("abcd", "abce"), 12), trigram_cosine("ab", "ab")
    (0.5, 0.0)
    """
    old_trigrams, new_trigrams = _trigrams(before), _trigrams(after)
    if not old_trigrams or not new_trigrams:
        return 0.0
    if len(old_trigrams) == len(before) - 2 and len(new_trigrams) == len(after) - 2:  # no trigram is repeated
        return len(old_trigrams & new_trigrams) / math.sqrt(len(old_trigrams) * len(new_trigrams))
    old_counts, new_counts = (Counter(text[i : i + 3] for i in range(len(text) - 2)) for text in (before, after))
    dot_product = sum(old_counts[trigram] * new_counts[trigram] for trigram in old_trigrams & new_trigrams)
    old_norm, new_norm = (sum(count * count for count in counts.values()) for counts in (old_counts, new_counts))
    return dot_product / math.sqrt(old_norm * new_norm) if dot_product else 0.0


def _trigrams(text: str) -> _Trigrams:
    return {text[i : i + 3] for i in range(len(text) - 2)}


def click_facts(log: InteractionLog) -> Relation:
    """Return one row for each click on a page, including repeated clicks on a result.

    A visit ends when the user is active on a result page of the same session: opens one, clicks, sees or hovers over a
    result. Actions on the opened result (heartbeats, purchases) do not end it. Leaving a result page does not end it
    either: browsers log it when a result opens in the same tab. Only an exit from the opened object does. If nothing
    ends a visit, it lasted at least until its last heartbeat: it is censored, and not dropped.

    Returns
    -------
    Relation
        ``serp, session, user, time_ms, object_id, rank``; ``dwell_ms``, observed or until the last event of the visit,
        at least 0, null without a clock; and ``ended`` (1: observed, 0: censored).
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
        activity AS (
            SELECT e.session, e.time_ms FROM {log.event} AS e JOIN opened AS o ON e.session = o.session
            WHERE e.time_ms >= o.first_ms
                AND (e.action IN {sql_list(RETURN_ACTIONS)} OR (e.action = 'page_exit' AND e.object_id IS NOT NULL))
            UNION ALL
            SELECT p.session, p.time_ms FROM {log.serp} AS p JOIN opened AS o ON p.session = o.session
            WHERE p.time_ms >= o.first_ms),
        followed AS (  -- of activities at the same time only the last has a later next one
            SELECT session, time_ms, next_ms FROM (
                SELECT session, time_ms, lead(time_ms) OVER (PARTITION BY session ORDER BY time_ms) AS next_ms
                FROM activity)
            WHERE next_ms > time_ms),
        watched AS (
            SELECT session, max(time_ms) AS watched_ms FROM {log.event}
            WHERE action IN {sql_list(ACTIONS_ON_RESULT)} GROUP BY session)
        SELECT c.serp, c.session, c."user", c.time_ms, c.object_id, c.rank,
            coalesce(c.dwell_ms, f.next_ms - c.time_ms, greatest(w.watched_ms - c.time_ms, 0), 0) AS dwell_ms,
            CAST(CASE WHEN c.dwell_ms IS NOT NULL OR f.next_ms IS NOT NULL THEN 1 ELSE 0 END AS BIGINT) AS ended
        FROM click AS c
        LEFT JOIN followed AS f ON f.session = c.session AND f.time_ms = c.time_ms
        LEFT JOIN watched AS w ON w.session = c.session""",
        "click",
    )


PAIRS_AT_ONCE = 50_000  # pairs of texts that are Python objects at the same time


def begin_next_queries(serp: Relation, *, within_ms: int) -> Callable[[], Relation]:
    """Start to compare the query of each page with the next query of its session.

    Texts are compared in a thread, while the database can do other work.

    Parameters
    ----------
    serp
        Typed table of pages.
    within_ms
        Longest gap between pages whose texts are compared. Repeated queries are found with any gap.

    Returns
    -------
    finish : callable
        Waits, and returns one row for each page with a later first page in its session: ``serp``; ``next_serp``, of
        several at the same time the smallest; ``gap_ms``, the time between the pages; ``kind``, one of
        `judged.online.facts.reformulation.KINDS`, null if a text is null or the gap too long; ``again``, whether it is
        an unfiltered first page and the next unfiltered first page has the same text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from judged.online.engine import Database
    >>> pages = {"serp": [1, 2, 3], "session": [7, 7, 7], "time_ms": [0, 5_000, 9_000], "page": [1, 2, 1]}
    >>> pages |= {"filtered": [False] * 3, "query_norm": ["shoes", "shoes", "red shoes"]}
    >>> next_queries = begin_next_queries(Database().register(pa.table(pages)), within_ms=300_000)()
    >>> next_queries.engine.rows(f"FROM {next_queries} ORDER BY serp")
    [{'serp': 1, 'next_serp': 3, 'gap_ms': 9000, 'kind': 'specialize', 'again': False},
     {'serp': 2, 'next_serp': 3, 'gap_ms': 4000, 'kind': 'specialize', 'again': False}]
    """
    engine = serp.engine
    pairs = engine.keep(
        f"""
        WITH starts AS (
            SELECT session, time_ms, min(CASE WHEN page = 1 THEN serp END) AS first_page,
                min(CASE WHEN page = 1 AND NOT filtered THEN serp END) AS unfiltered
            FROM {serp} GROUP BY session, time_ms),
        ahead AS (
            SELECT session, time_ms, first_value(first_page IGNORE NULLS) OVER later AS next_serp,
                first_value(unfiltered IGNORE NULLS) OVER later AS next_unfiltered
            FROM starts
            WINDOW later AS (
                PARTITION BY session ORDER BY time_ms ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))
        SELECT p.serp, a.next_serp, n.time_ms - p.time_ms AS gap_ms, p.query_norm AS query, n.query_norm AS next_query,
            p.page = 1 AND NOT p.filtered AND coalesce(p.query_norm = u.query_norm, false) AS again
        FROM {serp} AS p
        JOIN ahead AS a ON a.session = p.session AND a.time_ms = p.time_ms
        JOIN {serp} AS n ON n.serp = a.next_serp
        LEFT JOIN {serp} AS u ON u.serp = a.next_unfiltered""",
        "next_query",
    )
    texts = engine.arrow(
        f"SELECT DISTINCT query, next_query FROM {pairs} WHERE query <> next_query AND gap_ms <= {within_ms}"
    )
    executor = ThreadPoolExecutor(1)
    kinds = executor.submit(_kinds, texts)
    executor.shutdown(wait=False)
    return lambda: engine.query(f"""
        SELECT p.serp, p.next_serp, p.gap_ms,
            CASE WHEN p.query = p.next_query THEN 'same' WHEN p.gap_ms <= {within_ms} THEN k.kind END AS kind, p.again
        FROM {pairs} AS p
        LEFT JOIN {engine.register(kinds.result())} AS k ON k.query = p.query AND k.next_query = p.next_query""")


def _kinds(texts: Any) -> Table:
    tables: list[Table] = []
    for batch in texts.to_batches(max_chunksize=PAIRS_AT_ONCE):
        queries, next_queries = batch["query"], batch["next_query"]
        kinds = reformulation_kinds(queries, next_queries)
        tables.append(pa.table({"query": queries, "next_query": next_queries, "kind": kinds}))
    return pa.concat_tables(tables) if tables else texts.append_column("kind", pa.array([], pa.string()))
