"""The decision of a gate in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.decimals import decimal
from judged.gating.findings import CheckFinding
from judged.stats.pairing import topics_text
from judged.stats.planning import amount
from judged.stats.rare import share_bound
from judged.stats.results import p_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.gating.findings import Decision, GuardrailFinding

_ROUNDING = 1e-9
_TESTS = {"randomisation": "paired randomisation test", "t": "paired t-test"}


def sentences(result: Decision) -> tuple[str, ...]:
    """Say what was decided, and then what was found by each check and guardrail."""
    return headline(result), *map(sentence_of, result.parts)


def sentence_of(one: CheckFinding | GuardrailFinding) -> str:
    """Say what was found by one part."""
    return check_sentence(one) if isinstance(one, CheckFinding) else guardrail_sentence(one)


def headline(result: Decision) -> str:
    """Say whether the gate passes, and why not."""
    failed = [one for one in result.parts if one.status == "fail"]
    strict = [one for one in result.parts if one.blocks and one.status != "fail"]
    unclear = [one for one in result.parts if one.status == "inconclusive" and not one.blocks]
    pair = f"{result.candidate} against {result.baseline}"
    reasons = [f"{_count(failed, result)} failed"] if failed else []
    reasons += [f"{_count(strict, result)} inconclusive, which strict mode does not let pass"] if strict else []
    if reasons:
        return f"FAIL: {pair}: {'; '.join(reasons)}."
    if unclear:
        return f"INCONCLUSIVE: {pair}: nothing failed, and {_count(unclear, result)} could not be decided."
    return f"PASS: {pair}: {_all(result)}."


def _all(result: Decision) -> str:
    parts = [f"{name}s" for name, some in (("check", result.checks), ("guardrail", result.guardrails)) if some]
    return f"all {' and '.join(parts)} passed" if len(result.parts) > 1 else f"its {parts[0].rstrip('s')} passed"


def _count(some: Sequence[CheckFinding | GuardrailFinding], result: Decision) -> str:
    checks = sum(one in result.checks for one in some)
    rails = len(some) - checks
    counts = [f"{checks} of {_several(len(result.checks), 'check')}"] if checks else []
    counts += [f"{rails} of {_several(len(result.guardrails), 'guardrail')}"] if rails else []
    return " and ".join(counts)


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def check_sentence(found: CheckFinding) -> str:
    """Say what was found by a check."""
    text = f"{_named(found)}: {_verdict(found)}{_large_losses(found)}"
    if found.left_out:
        text += f" {topics_text(found.left_out)} without a score for both runs did not count."
    return text


def _large_losses(found: CheckFinding) -> str:
    """Say how many topics lost much, how many of all topics may, and which of these lost most."""
    if not found.worst:
        return ""
    which = (
        f"{found.large_losses} of {topics_text(found.n)}" if found.large_losses else f"None of {topics_text(found.n)}"
    )
    bound = share_bound(found.large_losses, found.n, 1 - found.alpha)
    listed = ", ".join(f"{one.query_id} {_score(one.baseline)} to {_score(one.candidate)}" for one in found.worst)
    return (
        f" {which} lost more than {digits(found.large_loss)}; of all topics up to {bound:.1%} may"
        f" ({100 * (1 - found.alpha):g}% bound). Most was lost on {listed}."
    )


def _named(found: CheckFinding) -> str:
    owner = f" (owner: {found.owner})" if found.owner else ""
    return f"{found.name}{owner}"


def _verdict(found: CheckFinding) -> str:
    if found.status == "fail" and not found.proved:
        return (
            f"failed: more than {100 * (found.max_share_of_large_losses or 0):g}% of the topics had a large loss; that"
            f" the mean lost more than its margin of {size(found, found.margin)} is not shown"
            f" ({_interval(found)}p {p_text(found.adjusted, found.alpha)}{_corrected(found)})."
        )
    if found.status == "fail":
        return (
            f"failed: {_lost(found)}, more than the margin of {size(found, found.margin)}"
            f" ({_interval(found)}p {p_text(found.adjusted, found.alpha)}{_corrected(found)},"
            f" {topics_text(found.n)}).{_noted(found)}"
        )
    if found.status == "pass":
        return _passing(found)
    strict = " In strict mode, that fails." if found.strict else ""
    if math.isnan(found.p):
        seen = f" ({_lost(found)})" if found.n and (found.baseline or found.candidate) else ""
        return f"inconclusive: {found.note}{seen}.{strict}"
    return f"inconclusive: {_unclear(found)}{_noted(found)}{strict}"


def _passing(found: CheckFinding) -> str:
    if math.isnan(found.p) or found.identical:
        return f"passed: {found.note}."
    gain = f"; the candidate is worse, by at least {size(found, found.least_loss)}" if found.least_loss > 0 else ""
    gain = (
        f"; the candidate is better, by at least {size(found, -found.largest_loss)}" if found.largest_loss < 0 else gain
    )
    seen = size(found, found.margin)
    return (
        f"passed: a mean loss of more than {seen} is ruled out{gain}"
        f" ({_interval(found)}p {p_text(found.p_safe, found.alpha)}, {topics_text(found.n)}){_unseen(found)}."
        f"{_noted(found)}"
    )


def _unseen(found: CheckFinding) -> str:
    """Say which losses are so rare that these topics may have none, and yet outweigh the margin."""
    if math.isnan(found.unseen_loss):
        return ""
    share = share_bound(0, found.n, 1 - found.alpha)
    return (
        f", but for losses of {digits(found.unseen_loss)} and more on up to {share:.1%} of all topics, which may show"
        " in none of these"
    )


def _unclear(found: CheckFinding) -> str:
    """Say what cannot be ruled out, and what would have been noticed."""
    largest = found.largest_loss
    open_ = "no loss, however large," if math.isinf(largest) else f"a loss of up to {size(found, largest)}"
    cannot = "can be ruled out" if math.isinf(largest) else "cannot be ruled out"
    parts = [f"{open_} {cannot}, and the margin is {size(found, found.margin)}"]
    if found.p <= (1 - found.level) / 2 * (1 + 1e-9):
        parts.append(f"by itself it would have failed (p {p_text(found.p, found.alpha)}), but not{_corrected(found)}")
    elif found.least_loss > 0:
        parts.append(
            f"the candidate is worse (by at least {size(found, found.least_loss)}), but perhaps by less than that"
        )
    if never := _never(found):
        parts.append(never)
    elif not math.isnan(found.detectable):
        seen = f"with {topics_text(found.n)} a loss of {size(found, found.detectable)} would have been noticed"
        parts.append(f"{seen} {often(found.power)}, less often where few topics bear it")
    return "; ".join(parts) + "."


def _never(found: CheckFinding) -> str:
    """Say where no loss, however large, could fail: with so few topics, or resamples."""
    asked = found.alpha * (1 + _ROUNDING)
    if not found.least_p * found.family > asked:
        return ""
    few = topics_text(found.n) if math.isclose(found.least_p, 2.0**-found.n) else "so few resamples"
    said = f"with {few} p cannot be below {found.least_p:.2g}"
    if found.least_p > asked:
        return f"{said}: this check can never fail"
    correction = found.correction.capitalize()
    least = min(found.least_p * found.family, 1.0)
    said += f", nor below {least:.2g} after {correction}'s correction for {found.family} checks"
    return f"{said}: this check can never fail{' unless others do' if found.correction == 'holm' else ''}"


def often(power: float) -> str:
    """Write a chance.

    >>> often(0.8), often(0.9)
    ('four times in five', 'with a chance of 90%')
    """
    return "four times in five" if math.isclose(power, 0.8) else f"with a chance of {power:.0%}"


def _lost(found: CheckFinding) -> str:
    """Say what was seen."""
    verb = "lost" if found.loss > 0 else "gained"
    return (
        f"the candidate {verb} {size(found, abs(found.loss))} ({_score(found.baseline)} to {_score(found.candidate)})"
        if found.loss
        else f"no difference ({_score(found.baseline)})"
    )


def _interval(found: CheckFinding) -> str:
    if found.interval is None or any(map(math.isinf, found.interval)):
        return ""
    low, high = found.interval
    return f"{found.level:.0%} interval of the difference {signed(found, low)} to {signed(found, high)}, "


def _corrected(found: CheckFinding) -> str:
    names = {"holm": " after Holm's correction", "bonferroni": " after Bonferroni's correction", "none": ""}
    return names[found.correction] if found.adjusted != found.p else ""


def _noted(found: CheckFinding) -> str:
    return f" Note: {found.note}." if found.note else ""


def _score(value: float) -> str:
    return amount(value) if 0 < abs(value) < 0.01 else decimal(value)


def size(found: CheckFinding, value: float) -> str:
    """Write a size; one of a ratio in per cent."""
    return f"{100 * value:.3g}%" if found.kind == "ratio" else digits(value)


def digits(value: float) -> str:
    """Write a loss without zeros at its end: a margin of 0.01 is one of 0.01.

    >>> digits(0.01), digits(0.0345678), digits(0.0), digits(0.00012)
    ('0.01', '0.0346', '0', '0.00012')
    """
    return _short(value) if abs(value) >= 0.001 or value == 0 else f"{value:.2g}"


def signed(found: CheckFinding, value: float, digits: int = 4) -> str:
    """Write a difference with its sign; one of a ratio in per cent."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "-inf" if value < 0 else "+inf"
    if found.kind == "ratio":
        return f"{100 * value:+.1f}%"
    return decimal(value, digits, "+")


def guardrail_sentence(found: GuardrailFinding) -> str:
    """Say what was found by a guardrail."""
    passed = "passed" if found.status == "pass" else "failed"
    against = "" if math.isnan(found.baseline) else f" (baseline {number(found.baseline)})"
    if found.guardrail.at_most_ratio is not None and found.baseline:
        against = f", {found.candidate / found.baseline:.3g} times the baseline's {number(found.baseline)}"
    allowed = ", ".join(found.limits)
    return f"{found.name}: {passed}: the candidate has {number(found.candidate)}{against}; allowed: {allowed}."


def number(value: float) -> str:
    """Write a number as it stands.

    >>> number(0.93333333), number(180.0), number(math.nan)
    ('0.9333', '180', '-')
    """
    return "-" if math.isnan(value) else _short(value) if abs(value) < 1e6 else f"{value:g}"


def _short(value: float) -> str:
    """Write a number without zeros at its end."""
    text = decimal(value)
    return text if "e" in text else text.rstrip("0").rstrip(".")


def caption(result: Decision) -> str:
    """Say by which rules it was decided."""
    config = result.config
    tested = sum(not math.isnan(one.p) for one in result.checks)
    if not result.checks:
        return "nothing is tested: guardrails are numbers that are compared as they stand"
    drawn = f", {config.resamples} resamples, seed {config.seed}" if config.test == "randomisation" else ""
    ratio = " (of ratios for geometric means)" if any(one.kind == "ratio" for one in result.checks) else ""
    several = config.correction != "none" and tested > 1
    by = f"p corrected by {config.correction.capitalize()} for {tested} checks" if several else "p not corrected"
    sides = "an inconclusive check fails" if config.strict else "an inconclusive check does not fail"
    return (
        f"{_TESTS[config.test]}{ratio} of a loss beyond the margin, one-sided{drawn}; {by}; alpha = {config.alpha:g};"
        f" {1 - 2 * config.alpha:.0%} intervals;"
        f" {'strict: ' if config.strict else ''}{sides}"
    )
