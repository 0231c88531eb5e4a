"""The choice of an oracle: never beaten, and explained with its own figures."""

import math
import re

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local import (
    GRR,
    OLH,
    OUE,
    FrequencyOracle,
    NumericOracle,
    Oracle,
    ProjectiveGeometry,
    SquareWave,
    choose,
)
from sourdine.local.choose import FREQUENCY, NUMERIC, frequency_oracle, kinds, numeric_oracle
from sourdine.local.oracle import CodeReports
from tests import contract
from tests.errors import refusal_of


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2, 4, 8])
@pytest.mark.parametrize("categories", [2, 3, 10, 100, 1000])
def test_no_oracle_is_better_by_more_than_its_bytes_are_worth(epsilon: float, categories: int) -> None:
    oracle, why = choose(epsilon, categories)
    chosen = float(oracle.variance(1 / categories, 1))
    for kind in kinds():
        other = kind(epsilon=epsilon, categories=categories)
        variance = float(other.variance(1 / categories, 1))
        assert chosen * 1.01 ** math.log2(oracle.width / other.width) <= variance * (1 + 1e-6)
    assert why.startswith(f"{type(oracle).__name__}: a variance of {chosen:.3g}/n")
    assert f"reports of {oracle.width} byte" in why


@pytest.mark.parametrize(("base", "names"), [(FrequencyOracle, FREQUENCY), (NumericOracle, NUMERIC)])
def test_every_oracle_has_a_name_to_type(base: type[Oracle], names: dict[str, type[Oracle]]) -> None:
    nameless = [kind.__name__ for kind in contract.oracles(base) if kind not in names.values()]
    assert nameless == [], "name them in FREQUENCY or NUMERIC of local/choose.py"


def test_two_answers_are_k_ary_response() -> None:
    assert isinstance(choose(1, 2).oracle, GRR)
    assert isinstance(choose(9, 500).oracle, GRR)


def test_many_answers_are_short_reports() -> None:
    oracle, why = choose(1, 1000)
    assert isinstance(oracle, OLH)
    assert "3.68/n at a frequency of 1/1000" in why
    assert isinstance(choose(4, 1000).oracle, ProjectiveGeometry)


@pytest.mark.parametrize("name", ["local-hashing", "hadamard"])
def test_no_report_to_a_new_question_supports_every_category(name: str) -> None:
    oracle, _ = frequency_oracle(name, epsilon=1, categories=11)
    assert isinstance(oracle, CodeReports)
    assert isinstance(oracle, FrequencyOracle)
    supports = [oracle.supports(oracle.tally(np.array([code]))).sum() for code in range(oracle.codes)]
    assert max(supports) < oracle.categories


def test_a_frequency_can_be_stated() -> None:
    assert "at a frequency of 0.25" not in choose(1, 50).why
    assert "at a frequency of 1/4" in choose(1, 50, frequency=0.25).why
    assert "at a frequency of 0.3" in choose(1, 50, frequency=0.3).why


def test_bad_questions_are_refused() -> None:
    with refusal_of("epsilon", "choose"):
        choose(0, 5)
    with refusal_of("categories", "choose"):
        choose(1, 1)
    with refusal_of("frequency", "choose"):
        choose(1, 5, frequency=1.5)


def test_an_oracle_is_known_by_the_name_of_its_class_too() -> None:
    for name, kind in (("OUE", OUE), ("oue", OUE), ("optimal-unary", OUE), ("GRR", GRR), ("OLH", OLH)):
        assert isinstance(frequency_oracle(name, epsilon=1, categories=4)[0], kind)
    assert isinstance(numeric_oracle("SquareWave", epsilon=1, lower=0, upper=1)[0], SquareWave)
    with pytest.raises(InvalidParameter, match=re.escape("optimal-unary (OUE)")):
        frequency_oracle("oui", epsilon=1, categories=4)
