"""Formulas of the thesis with something missing, evaluated as printed and as they should be."""

import math

import numpy as np

from sourdine.accounting import Renyi, noise_for, poisson
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import GaussianLaw
from sourdine.core.loss import PrivacyLoss
from sourdine.report.view import Section, TextTable
from sourdine_reproduction.budget.lecture_notes import DELTA, textbook_sigma
from sourdine_reproduction.budget.printed_run import RUN
from sourdine_reproduction.registry import ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

ORDER = 13
EPSILON = 0.5
CLIP = 10.0  # the flowers table's


def reproduce(settings: Settings) -> ExperimentPart:
    """The Renyi divergence, two of its curves at the order of the printed run, and a delta."""
    del settings
    accountant = Renyi(orders=(float(ORDER),))
    whole = PrivacyLoss.symmetric(GaussianLaw(1 / RUN.noise_multiplier), neighbours=Neighbours.ADD_REMOVE)
    gaussian, sampled = (
        float(accountant.curve(accountant.lift(loss))[0])
        for loss in (whole, poisson(whole, RUN.sampling_rate))
    )
    printed_gaussian = ORDER / (2 * (CLIP * RUN.noise_multiplier) ** 2)
    printed_sampled = _without_binomials(RUN.sampling_rate, RUN.noise_multiplier)
    sigma = textbook_sigma(EPSILON, DELTA)
    rows = (
        (f"divergence of order {ORDER} of two Gaussians, without the exponent", 0.0, gaussian),
        (
            f"the same for noise {CLIP:g} on a sensitivity of {CLIP:g}: α/(2 (Cσ)²)",
            printed_gaussian,
            gaussian,
        ),
        (
            f"divergence of order {ORDER} of one printed step: a sum without binomials",
            printed_sampled,
            sampled,
        ),
        (
            f"δ of Gaussian noise {sigma:.3g} at ε = {EPSILON:g}: 5/4 exp(-(Δσ)²/2)",
            1.25 * math.exp(-(sigma**2) / 2),
            float(GaussianLaw(1 / sigma).profile(EPSILON)),
        ),
    )
    reasons = (
        "E[P/Q] is 1 for every pair, so its logarithm is 0. The exponent α is missing.",
        "Noise and sensitivity both grow with C, which cancels: α/(2σ²).",
        "Without the binomials the sum does not even reach 1, and its logarithm is negative. A slip of the "
        "page: the tool that it explains has them.",
        "ε is missing, and Δ stands above where it belongs below: 5/4 exp(-(σε/Δ)²/2).",
    )
    names = ("thesis.renyi", "thesis.curve", "thesis.moments", "thesis.delta")
    cases = (
        f" at α = {ORDER} for Gaussians one deviation apart",
        " there",
        " there",
        f" there, at ε = {EPSILON:g}",
    )
    verdicts = tuple(
        judge(
            name,
            finding=f"{right:.4g}{case}",
            standing=Standing.WRONG if printed < 0.9 * right else Standing.REPRODUCED,
            why=why,
        )
        for name, (_, printed, right), why, case in zip(names, rows, reasons, cases, strict=True)
    )
    least = noise_for(EPSILON, DELTA, 1.0, 1)
    enough = judge(
        "thesis.gaussian",
        finding=f"{least:.3g} is enough",
        standing=Standing.LOOSE if least < sigma else Standing.WRONG,
        why="By the exact condition, which also holds for ε of 1 and more.",
    )
    table = TextTable(
        name="formulas",
        title="Formulas with a part missing",
        columns=("formula", "as printed", "as it should be"),
        rows=rows,
        note="The thesis's tool computes them rightly; only the printed formulas lack something.",
    )
    section = Section(
        title="Printed formulas",
        paragraphs=(
            "Three formulas of the thesis lack a part. Put to use as printed, they promise too much.",
        ),
        tables=(table,),
    )
    return ExperimentPart((*verdicts, enough), section)


def _without_binomials(rate: float, noise: float) -> float:
    """The printed sum over k of (1-q)^(a-k) q^k e^((k^2-k)/(2 sigma^2)), as a divergence."""
    k = np.arange(ORDER + 1)
    exponents = (ORDER - k) * math.log1p(-rate) + k * math.log(rate) + (k * k - k) / (2 * noise**2)
    return float(np.log(np.exp(exponents).sum()) / (ORDER - 1))
