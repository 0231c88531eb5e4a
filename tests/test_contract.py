"""The contract that every mechanism keeps, on every example that it states."""

import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sourdine.mechanisms
from sourdine.core.distance import Distance, Norm
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.serialization import is_ours, name_of
from sourdine.local import Hybrid
from sourdine.mechanisms import KeyNoise, PartitionThreshold
from sourdine.testing import SeededBits
from tests import contract
from tests.errors import refusal_of
from tests.laws import law_of, noise_of
from tests.statistics import ALARM, fit

FEW, MORE = 20_000, 100_000  # samples: the larger number where the smaller does not tell a law 10 % off
MAY_BE_ZERO = {(Hybrid, "share")}  # it is Duchi then
PAGES = Path(__file__).parent.parent / "docs" / "guarantees"


@pytest.mark.parametrize("kind", contract.all_kinds())
def test_is_frozen_keyword_only_and_documented(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    assert vars(kind)["__dataclass_params__"].frozen
    assert all(field.kw_only for field in dataclasses.fields(kind))
    assert ">>>" in (kind.__doc__ or "")
    pages = [page.read_text(encoding="utf-8") for page in PAGES.glob("[a-z]*.md")]
    assert any(f"`{kind.__name__}" in page for page in pages), (
        "write a page in docs/guarantees with its proof"
    )


@pytest.mark.parametrize("kind", contract.all_kinds())
def test_has_examples_and_a_law(kind: type[Mechanism]) -> None:
    found = list(kind.examples())
    assert found, f"yield some from {kind.__name__}.examples"
    assert law_of(found[0].mechanism, found[0].value)
    noise_of(found[0].mechanism)


def test_every_mechanism_of_the_room_is_exported() -> None:
    names = sourdine.mechanisms.__all__
    assert names == sorted(names)
    folder = Path(sourdine.mechanisms.__file__).parent
    defined = {
        line.split("class ")[1].split("(")[0].rstrip(":\n")
        for file in folder.glob("*.py")
        for line in file.read_text().splitlines()
        if line.startswith("class ") and not line.startswith("class _")
    }
    defined -= {"AdditiveNoise"}  # what several are derived from
    assert {name for name in names if name[0].isupper() and not name.isupper()} == defined


@pytest.mark.parametrize("example", contract.examples())
def test_survives_json(example: Example) -> None:
    written = example.mechanism.to_json()
    assert written["mechanism"] == name_of(type(example.mechanism)) == example.mechanism.name
    assert contract.through_json(example.mechanism) == example.mechanism


@pytest.mark.parametrize("kind", contract.all_kinds())
def test_has_a_lasting_name(kind: type[Mechanism]) -> None:
    assert is_ours(name_of(kind)), "give it a line in core/serialization.py"


@pytest.mark.parametrize("example", contract.examples())
def test_is_repeatable_with_a_seed_and_fresh_without(example: Example) -> None:
    first = example.outcomes(example.value, 200, SeededBits(1))
    assert np.array_equal(first, example.outcomes(example.value, 200, SeededBits(1)))
    assert not np.array_equal(first, example.outcomes(example.value, 200, SeededBits(2)))
    assert not np.array_equal(example.outcomes(example.value, 200), example.outcomes(example.value, 200))


@pytest.mark.parametrize("kind", contract.all_kinds())
def test_bad_parameters_name_themselves(kind: type[Mechanism]) -> None:
    mechanism = next(kind.examples()).mechanism
    for field, bad in bad_parameters(mechanism):
        with refusal_of(field) as caught:
            dataclasses.replace(mechanism, **{field: bad})  # type: ignore[type-var]
        assert len(str(caught.value)) < 300


def bad_parameters(mechanism: Mechanism) -> Iterator[tuple[str, object]]:
    for field in dataclasses.fields(mechanism):  # type: ignore[arg-type]
        value = getattr(mechanism, field.name)
        if isinstance(value, bool):
            yield field.name, 1
        elif isinstance(value, int | Fraction):
            yield from ((field.name, bad) for bad in (math.nan, "two", math.inf, [1], 2.0**90 + 0.0))
        if isinstance(value, Fraction) and value > 0 and (type(mechanism), field.name) not in MAY_BE_ZERO:
            yield from ((field.name, bad) for bad in (-value, 0))


def check_law(example: Example, count: int) -> None:
    mechanism = example.mechanism
    for seed, value in enumerate([example.value, example.neighbour]):
        samples = example.outcomes(value, count, SeededBits(seed))
        assert fit(samples, law_of(mechanism, value)) > ALARM


def refuses(example: Example, count: int) -> bool:
    """Whether so many samples tell the law from one that is 10 % off."""
    field = noise_of(example.mechanism)
    assert field is not None
    wrong = contract.off(example.mechanism, field)
    samples = example.outcomes(example.value, count, SeededBits(3))
    return fit(samples, law_of(wrong, example.value)) < ALARM


@pytest.mark.parametrize("example", contract.examples_of_laws())
def test_samples_follow_the_stated_law(example: Example) -> None:
    enough = noise_of(example.mechanism) is not None and refuses(example, FEW)
    check_law(example, FEW if enough else MORE)


@pytest.mark.slow
@pytest.mark.parametrize("example", contract.examples())
def test_samples_follow_the_stated_law_on_two_million_draws(example: Example) -> None:
    check_law(example, 2_000_000)


@pytest.mark.parametrize("example", contract.examples_of_laws())
def test_a_law_ten_percent_off_is_refused(example: Example) -> None:
    if noise_of(example.mechanism) is None:
        pytest.skip("it has no parameter to put off")
    assert any(refuses(example, count) for count in (FEW, MORE, 400_000))


@pytest.mark.parametrize("example", contract.examples())
def test_the_loss_covers_the_true_laws(example: Example) -> None:
    """The hockey-stick divergence of the two true laws never exceeds the profile that is claimed."""
    loss = example.mechanism.loss(example.distance)
    p, q = (law_of(example.mechanism, each) for each in (example.value, example.neighbour))
    for epsilon in np.linspace(0, min(float(loss.epsilon) + 0.1, 8), 30):
        factor = math.exp(epsilon)
        for one, other, direction in [(p, q, loss.remove), (q, p, loss.add)]:
            true = sum(max(0.0, mass - factor * other.get(code, 0.0)) for code, mass in one.items())
            assert true <= float(loss.profile(epsilon)) + 1e-9
            assert loss.profile(epsilon) >= direction.profile(epsilon)
    if math.isfinite(loss.epsilon):
        shared = [(p[code], q[code]) for code in p if code in q and min(p[code], q[code]) > 1e-9]
        worst = max(abs(math.log(one / other)) for one, other in shared)
        assert worst <= float(loss.epsilon) - math.log1p(-float(loss.delta)) + 1e-6


@pytest.mark.parametrize("example", contract.examples())
def test_the_profile_falls_and_is_convex_in_exp_epsilon(example: Example) -> None:
    loss = example.mechanism.loss(example.distance)
    contract.check_profile(loss)
    if math.isfinite(loss.epsilon):
        left = float(loss.profile(float(loss.epsilon) * (1 + 1e-12) + 1e-12))
        assert left == pytest.approx(float(loss.delta), abs=1e-12)


def test_the_contract_holds_for_a_mechanism_that_tells_nothing() -> None:
    contract.check_profile(PrivacyLoss.pure(Fraction(0)))
    shown = PartitionThreshold(noise=KeyNoise.LAPLACE, scale=Fraction(2), threshold=9)
    contract.check_profile(shown.loss(Distance(norm=shown.norm, amount=Fraction(1, 2))))


@pytest.mark.parametrize("example", contract.examples())
def test_a_larger_distance_never_costs_less(example: Example) -> None:
    near = example.mechanism.loss(example.distance)
    far = example.mechanism.loss(dataclasses.replace(example.distance, amount=2 * example.distance.amount))
    for epsilon in np.linspace(0, 5, 21):
        assert far.profile(epsilon) >= near.profile(epsilon) - 1e-12
    assert far.epsilon >= near.epsilon
    assert far.rho >= near.rho
    assert far.delta >= near.delta


@pytest.mark.parametrize("example", contract.examples())
def test_another_norm_is_refused(example: Example) -> None:
    for norm in set(Norm) - {example.mechanism.norm}:
        with pytest.raises(UnsupportedLoss):
            example.mechanism.loss(Distance(norm=norm, amount=Fraction(1), coordinates=1))


@pytest.mark.parametrize("kind", contract.all_kinds())
@pytest.mark.parametrize("bad", [0, 1, -1, math.nan, "high"])
def test_a_bad_confidence_is_refused(kind: type[Mechanism], bad: float) -> None:
    with pytest.raises(InvalidParameter, match="confidence"):
        next(kind.examples()).mechanism.error(bad)


@pytest.mark.parametrize("example", contract.examples())
def test_the_error_grows_with_the_confidence(example: Example) -> None:
    errors = [example.mechanism.error(confidence) for confidence in (0.5, 0.9, 0.95, 0.999)]
    assert errors == sorted(errors)
    assert all(math.isfinite(error) and error >= 0 for error in errors)
