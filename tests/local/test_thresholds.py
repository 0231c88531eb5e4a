"""Thresholds beside a question: whole numbers that are the probabilities of an oracle's draws."""

from fractions import Fraction

import mpmath
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local import (
    GRR,
    OLH,
    OUE,
    SUE,
    BoundedLaplaceOracle,
    HadamardResponse,
    Hybrid,
    Piecewise,
    ProjectiveGeometry,
    SubsetSelection,
)
from sourdine.local.thresholds import thresholds


def floor(share: mpmath.mpf) -> str:
    return f"{int(mpmath.floor(share * mpmath.mpf(2) ** 256)):x}"


def test_they_are_the_floors_of_closed_forms() -> None:
    """By mpmath, from the definitions of the oracles."""
    with mpmath.workdps(200):
        e = mpmath.e
        half = mpmath.exp(mpmath.mpf(1) / 2)
        assert thresholds(GRR(epsilon=1, categories=5)) == {"truth": [floor(4 / (4 + e))]}
        olh = thresholds(OLH(epsilon=1, categories=9, groups=3))
        assert olh == {"shift": [floor(e / (e + 2)), floor((e + 1) / (e + 2))]}
        assert thresholds(OUE(epsilon=1, categories=3)) == {"noise": [floor(1 / (1 + e))]}
        sue = thresholds(SUE(epsilon=1, categories=3))
        assert sue == {"noise": [floor(1 / (1 + half))], "truth": [floor(1 / (1 + half))]}
        hadamard = thresholds(HadamardResponse(epsilon=1, categories=9, blocks=3))
        assert hadamard == {"way": [floor(e / (e + 5)), floor((e + 1) / (e + 5))]}
        assert thresholds(HadamardResponse(epsilon=1, categories=9, blocks=1)) == {
            "way": [floor(e / (e + 1))]
        }
        projective = thresholds(ProjectiveGeometry(epsilon=1, categories=12, order=3))
        assert projective == {"touching": [floor(9 / (9 + 4 * e))]}
        subset = thresholds(SubsetSelection(epsilon=1, categories=10, size=3))
        assert subset["among"] == [floor(7 / (7 + 3 * e))]
        assert len(subset["plan"]) == 4
        window = thresholds(Piecewise(epsilon=1, lower=0, upper=1, cells=8, window=3))
        assert window == {"inside": [floor(8 / (8 + 3 * e))]}


def test_fractions_need_no_balls() -> None:
    hybrid = Hybrid(epsilon=1, lower=0, upper=1, cells=8, share=Fraction(1, 4))
    assert thresholds(hybrid)["slides"] == [f"{3 << 254:x}"]


def test_an_oracle_that_only_python_draws_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="drawn in Python alone"):
        thresholds(BoundedLaplaceOracle(epsilon=1, lower=0, upper=1))
