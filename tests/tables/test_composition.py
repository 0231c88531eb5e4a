"""Which noise a plan takes where a delta allows for several, and what its lines amount to together."""

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sourdine.accounting import PLD, plan_cost
from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit
from sourdine.mechanisms import Gaussian, KeyNoise, Laplace, PartitionThreshold
from sourdine.tables import ReleasePlan, Specification, Table
from sourdine.tables.privacy import NoiseChoice
from sourdine.tables.publication import Record
from sourdine.testing import SeededBits

COLUMNS = {
    "age": {"type": "integer", "lower": 0, "upper": 119},
    "sex": {"type": "category", "keys": ["f", "m"]},
    "town": {"type": "text"},
}
ROWS = pa.table(
    {
        "age": [31, 54] * 50,
        "sex": ["f", "m"] * 50,
        "town": ["a", "b"] * 50,
        "who": [str(i) for i in range(100)],
    }
)
COUNT = {"name": "sexes", "ask": ["count"], "by": ["sex"]}
TOWNS = {"name": "towns", "ask": ["count"], "by": ["town"]}
MEDIAN = {"name": "median", "ask": [{"quantiles": "age", "levels": [0.5]}]}
MANY_GROUPS = PrivacyUnit(name="person", column="who", max_groups=100)


def table_of(unit: PrivacyUnit | str = "person") -> Table:
    return Table(ROWS, unit=unit, columns=COLUMNS)


def several(number: int) -> list[dict[str, Any]]:
    return [{**COUNT, "name": f"sexes {i}"} for i in range(number)]


def mixed(**noise: Any) -> ReleasePlan:
    """A unit moves 100 ages and one count of the whole table: one wants Gaussian noise, and one Laplace."""
    ages = [{"name": f"ages {i}", "ask": ["count"], "by": ["age"], "weight": 3} for i in range(6)]
    whole = {"name": "whole", "ask": ["count"], "weight": 9}
    return table_of(MANY_GROUPS).plan(*ages, whole, epsilon=1, delta=1e-6, quality=False, **noise)


def test_a_delta_makes_a_single_answer_no_worse() -> None:
    people = table_of()
    for query in (COUNT, MEDIAN):
        without = people.plan(query, epsilon=1)
        declared = people.plan(query, epsilon=1, delta=1e-6)
        assert [line.mechanism for line in declared.lines] == [line.mechanism for line in without.lines]
        assert declared.guarantee.delta is None
        assert any("nothing of the declared delta" in note for note in declared.notes)
    gaussian = people.plan(COUNT, epsilon=1, delta=1e-6, noise="gaussian")
    assert isinstance(gaussian.lines[0].mechanism, Gaussian)
    nearest, other = (plan.forecast()[0].error or math.nan for plan in (declared, gaussian))
    assert isinstance(people.plan(COUNT, epsilon=1, delta=1e-6).lines[0].mechanism, Laplace)
    assert people.plan(COUNT, epsilon=1, delta=1e-6).forecast()[0].error == 3
    assert gaussian.forecast()[0].error == 9
    assert nearest < other * 2


def test_private_keys_have_the_lower_threshold() -> None:
    """By hand: Laplace noise of scale 2/0.95 with all of delta reaches 30, and Gaussian noise 35."""
    people = table_of()
    plan = people.plan(TOWNS, epsilon=1, delta=1e-6)
    keys = plan.lines[0].mechanism
    assert isinstance(keys, PartitionThreshold)
    assert (keys.noise, keys.threshold, float(keys.scale)) == (KeyNoise.LAPLACE, 30, pytest.approx(40 / 19))
    assert plan.guarantee.selection_delta == plan.guarantee.delta == 1e-6
    other = people.plan(TOWNS, epsilon=1, delta=1e-6, noise="gaussian")
    keys = other.lines[0].mechanism
    assert isinstance(keys, PartitionThreshold)
    assert (keys.noise, keys.threshold) == (KeyNoise.GAUSSIAN, 35)
    declared = people.plan(TOWNS, epsilon=1, delta=1e-6, selection_delta=1e-8)
    assert declared.guarantee.delta == 1e-8  # pure noise takes nothing of the rest


def test_many_answers_get_gaussian_noise() -> None:
    kinds = [table_of().plan(*several(n), epsilon=1, delta=1e-6).noise_taken for n in (1, 5, 10, 40)]
    assert kinds == [NoiseChoice.LAPLACE] * 2 + [NoiseChoice.GAUSSIAN] * 2


def test_measurements_get_the_noise_that_suits_each() -> None:
    plan = mixed()
    assert plan.noise_taken is NoiseChoice.NEAREST
    kinds = {(line.measurement.scope.query[:4], type(line.mechanism).__name__) for line in plan.lines}
    assert kinds == {("ages", "Gaussian"), ("whol", "Laplace")}
    assert any("Of 7 measurements, 6 have noise that is paid in rho" in note for note in plan.notes)
    assert sum(line.share for line in plan.lines) == 1
    laplace, gaussian = mixed(noise="laplace"), mixed(noise="gaussian")

    def mean(one: ReleasePlan) -> float:
        return sum(float(line.share) * math.log(line.mechanism.error()) for line in one.lines)

    assert mean(plan) < min(mean(laplace), mean(gaussian))


def plans(slow: bool) -> Iterator[ReleasePlan]:
    yield mixed()
    for noise in (None, "laplace", "gaussian") if slow else ():
        for queries in ([COUNT], several(12), [MEDIAN, TOWNS]):
            yield table_of().plan(*queries, epsilon=Fraction(3, 2), delta=1e-5, noise=noise)


def epsilon_of(rho: float, delta: float) -> float:
    """What rho amounts to at delta: the least of proposition 12 of Canonne, Kamath and Steinke, on a grid."""
    order = 1 + np.geomspace(1e-2, 1e4, 20_001)
    less = order - 1
    return float(np.min(order * rho + np.log(less / order) - (np.log(delta) + np.log(order)) / less))


@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_lines_together_stay_within_epsilon_and_delta(slow: bool) -> None:
    """By hand, and by another accountant, which knows nothing of how the plan divides its budget."""
    for plan in plans(slow):
        epsilon, delta = plan.privacy.epsilon, plan.privacy.delta or 0.0
        pure = [line.spend.one_loss().epsilon * line.count for line in plan.lines if not line.squared]
        rho = sum(line.spend.one_loss().rho * line.count for line in plan.lines if line.squared)
        leaks = sum(line.spend.one_loss().delta * line.count for line in plan.lines)
        kept = epsilon_of(float(rho), delta - leaks) if rho else 0.0
        assert sum(map(float, pure)) + kept <= float(epsilon) + 1e-6  # of the grid
        assert sum(map(float, pure)) + kept >= 0.97 * float(epsilon)  # what it pays for is used
        assert PLD().epsilon(plan_cost(plan.spends, PLD()), delta).lower <= float(epsilon)


def test_a_ledger_kept_in_rho_is_not_emptied_unasked(tmp_path: Path) -> None:
    people = table_of()
    with Ledger.create(tmp_path / "rho", epsilon=5, delta=1e-6) as ledger:
        with pytest.raises(InvalidParameter, match=r"costs rho .*, where Gaussian noise costs .*noise="):
            people.release(people.plan(COUNT, epsilon=1, delta=1e-6), ledger)
        assert ledger.status().spent == 0
        cheap = people.release(people.plan(COUNT, epsilon=1, delta=1e-6, noise="gaussian"), ledger)
        assert cheap.receipt is not None
        assert cheap.receipt.price < Fraction(1, 40)
        near = people.release(people.plan(COUNT, epsilon="1/2", delta=1e-6, noise="nearest"), ledger)
        assert near.receipt is not None
        assert near.receipt.price > Fraction(1, 10)
    with Ledger.create(tmp_path / "epsilon", epsilon=1) as ledger:
        people.release(people.plan(COUNT, epsilon=1, delta=1e-6), ledger)
        with pytest.raises(InvalidParameter, match='noise="laplace"'):
            people.release(people.plan(COUNT, epsilon=1, delta=1e-6, noise="gaussian"), ledger)


SPEC = """
[table]
source = "people.csv"
[privacy]
unit = "person"
epsilon = 1
delta = 1e-6
ledger = "people.ledger"
[columns.sex]
type = "category"
keys = ["f", "m"]
[[queries]]
name = "sexes"
ask = ["count"]
by = "sex"
"""


def test_a_specification_takes_the_noise_that_its_ledger_pays_least_for(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)

    def load() -> ReleasePlan:
        return Specification.load(tmp_path / "spec.toml").plan()

    assert load().noise_taken is NoiseChoice.LAPLACE
    with pytest.raises(InvalidParameter, match="--epsilon 1 --unit"):
        Specification.load(tmp_path / "spec.toml").open_ledger()
    Ledger.create(tmp_path / "people.ledger", epsilon=1, delta=1e-6)
    assert load().noise_taken is NoiseChoice.GAUSSIAN
    (tmp_path / "spec.toml").write_text(SPEC.replace("people.ledger", "postgresql://db.example/budgets#a"))
    assert load().noise_taken is NoiseChoice.GAUSSIAN  # and no server is asked
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "people.ledger").unlink()
    Ledger.create(tmp_path / "people.ledger", epsilon=1)
    assert load().noise_taken is NoiseChoice.LAPLACE
    (tmp_path / "spec.toml").write_text(SPEC.replace("delta = 1e-6", 'delta = 1e-6\nnoise = "gaussian"'))
    assert load().noise_taken is NoiseChoice.GAUSSIAN
    (tmp_path / "spec.toml").write_text(SPEC.replace("delta = 1e-6", 'noise = "gaussian"'))
    with pytest.raises(InvalidParameter, match="Gaussian noise needs a delta"):
        load()


@pytest.mark.parametrize("noise", [None, "gaussian"])
def test_a_record_keeps_the_noise_that_was_taken(noise: str | None, tmp_path: Path) -> None:
    people = table_of()
    plan = people.plan(COUNT, epsilon=1, delta=1e-6, noise=noise)
    place: dict[str, Any] = {"epsilon": 1} if noise is None else {"epsilon": 1, "delta": 1e-6}
    with Ledger.create(tmp_path / "l", **place) as ledger:
        made = people.release(plan, ledger, bits=SeededBits(1))
        made.write(tmp_path / "out", ledger)
    text = (tmp_path / "out" / "release.json").read_text()
    assert Record.from_json(text).plan.spends == plan.spends
    # before there was a choice, no file named one, and a delta meant Gaussian noise
    old = json.loads(text)
    assert old["specification"]["privacy"].pop("noise") == str(plan.noise_taken)
    assert Record.from_json(json.dumps(old)).plan.noise_taken is NoiseChoice.GAUSSIAN


def test_noise_is_one_of_three() -> None:
    with pytest.raises(InvalidParameter, match="must be nearest, laplace, gaussian, or left out"):
        table_of().plan(COUNT, epsilon=1, delta=1e-6, noise="cauchy")
    with pytest.raises(InvalidParameter, match="Gaussian noise needs a delta"):
        table_of().plan(COUNT, epsilon=1, noise="gaussian")
