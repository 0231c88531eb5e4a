"""What counts of reports to a question say, as plain data: what commands print and servers send."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from sourdine.core.distributions import float_above
from sourdine.local.consistency import shares_of_all
from sourdine.local.estimate import Counts, Estimate, Floats
from sourdine.local.oracle import FrequencyOracle
from sourdine.local.poisoning import Reach, Sign, attackers_reach, has_reach, signs_of_periods
from sourdine.local.pooling import pooled_estimate
from sourdine.local.question import Question


def survey_document(
    question: Question,
    periods: Sequence[Counts],
    confidence: float = 0.95,
    attackers: Fraction = Fraction(1, 100),
    *,
    in_all: int = 1,
) -> dict[str, object]:
    """The estimates from the counts of some periods, for machines; without any report there are none yet.

    Words need a list of candidates to be read by, so they have none here either. How far a share of attackers
    could have moved each estimate stands beside it, and what tests of made-up reports say.
    """
    reports = sum(each.reports for each in periods)
    if reports == 0 or question.oracle.takes_words:
        return _head(question, reports, confidence) | {"answers": [], "attackers": None, "quality": []}
    answer = in_rows(pooled_estimate(question, periods, confidence))
    reach = attackers_reach(question.oracle, answer, attackers) if has_reach(question.oracle) else None
    signs = signs_of_periods(question.oracle, periods, in_all)
    return estimate_document(question, answer, answer.value, reach) | quality_document(signs)


def estimate_document(
    question: Question, answer: Estimate, values: Floats, reach: Reach | None
) -> dict[str, object]:
    """Return an estimate as plain data: the values as asked for, unbiased, and constrained to sum to 1."""
    count = len(answer.value)
    constrained = None if not isinstance(question.oracle, FrequencyOracle) else shares_of_all(answer)
    whole = [None] * count if constrained is None else constrained.tolist()
    ups = [None] * count if reach is None else reach.up.reshape(-1).tolist()
    downs = [None] * count if reach is None else reach.down.reshape(-1).tolist()
    return _head(question, answer.reports, answer.confidence) | {
        "attackers": None if reach is None else reach.share,
        "answers": [
            {
                "answer": name,
                "value": float(value),
                "unbiased": float(raw),
                "constrained": within,
                "standard_error": math.sqrt(variance),
                "lower": float(low),
                "upper": float(high),
                "moved_up": up,
                "moved_down": down,
            }
            for name, value, raw, within, variance, low, high, up, down in zip(
                answer_names(question, answer),
                values,
                answer.value,
                whole,
                answer.variance.tolist(),
                answer.lower,
                answer.upper,
                ups,
                downs,
                strict=True,
            )
        ],
    }


def quality_document(signs: Sequence[Sign]) -> dict[str, object]:
    """What the tests of made-up reports say."""
    return {
        "quality": [
            {"test": sign.name, "value": sign.value, "expected": sign.expected, "alarm": sign.alarm}
            for sign in signs
        ]
    }


def _head(question: Question, reports: int, confidence: float) -> dict[str, object]:
    return {
        "question": question.name,
        "specification": question.fingerprint,
        "reports": reports,
        "confidence": confidence,
        "epsilon": float_above(question.oracle.spend.loss().epsilon),
    }


def in_rows(answer: Estimate) -> Estimate:
    """A single number, such as a mean, as a row of one."""
    value, variance, lower, upper = map(
        np.atleast_1d, (answer.value, answer.variance, answer.lower, answer.upper)
    )
    return replace(answer, value=value, variance=variance, lower=lower, upper=upper)


def answer_names(question: Question, answer: Estimate) -> Sequence[str]:
    """What the rows of an estimate are called."""
    if not isinstance(question.oracle, FrequencyOracle):
        return ["mean"]
    return question.labels or [str(i) for i in range(len(answer.value))]
