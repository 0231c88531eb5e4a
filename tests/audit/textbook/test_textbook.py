from fractions import Fraction
from importlib import import_module
from inspect import isabstract

import numpy as np
import pytest
from typer.testing import CliRunner

from sourdine.audit import examine, find_examples, textbook
from sourdine.audit.textbook import reports
from sourdine.audit.textbook.dice import gaussian, laplace, staircase
from sourdine.cli import app
from sourdine.core import serialization as registry
from sourdine.core.mechanism import Example, Mechanism
from sourdine.learning import BestOfRuns, NoisyGradient
from sourdine.local import OUE
from sourdine.testing import SeededBits
from tests.contract import one_of_each


def without_reference() -> list[str]:
    """Mechanisms that files can name, and whose distribution no reference sampler draws."""
    homes = {name: home.split(":") for name, home in registry.TABLE.items()}
    classes = {name: getattr(import_module(module), kind) for name, (module, kind) in homes.items()}
    mechanisms = {
        name: kind
        for name, kind in classes.items()
        if isinstance(kind, type) and issubclass(kind, Mechanism) and not isabstract(kind)
    }
    return [name for name, kind in mechanisms.items() if not textbook.known(next(kind.examples()).mechanism)]


def test_every_mechanism_is_known() -> None:
    assert without_reference() == [], (
        "write how a textbook draws it in audit/textbook (central.py, reports.py or quantiles.py), and its "
        "line in _WAYS of audit/textbook/__init__.py"
    )


@pytest.mark.parametrize("kind", sorted(textbook._WAYS, key=str))
def test_no_reference_is_missed_without_a_word(
    kind: type[Mechanism], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: mechanisms of learning had none, or could lose theirs."""
    monkeypatch.setattr(textbook, "_WAYS", {one: way for one, way in textbook._WAYS.items() if one != kind})
    assert without_reference() == [kind.name]


def test_a_mechanism_without_a_reference_is_examined_and_it_is_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    example = next(OUE.examples())
    assert examine(example, samples=2000, bits=SeededBits(1)).unchecked == ""
    monkeypatch.setattr(textbook, "_WAYS", {})
    verdict = examine(example, samples=2000, bits=SeededBits(1))
    assert (verdict.law, verdict.caught_by) == (None, None)
    assert verdict.unchecked.startswith("The distribution of OUE was not checked")
    shown = CliRunner().invoke(app, ["audit", "OUE", "--samples", "1000", "--seed", "1"])
    assert "was not checked" in " ".join(shown.stdout.split())


def test_a_unary_encoding_without_its_own_chances_is_not_drawn_as_another() -> None:
    class Other(OUE):
        pass

    with pytest.raises(NotImplementedError, match=r"Other .* draw_unary"):
        reports.draw_unary(Other(epsilon=1, categories=3), 0, 5, np.random.default_rng(1))


LEARNING = [example for kind in (BestOfRuns, NoisyGradient) for example in kind.examples()]


@pytest.mark.parametrize("example", one_of_each([*find_examples(), *LEARNING]))
def test_every_mechanism_has_the_law_of_its_textbook(example: Example) -> None:
    verdict = examine(example, samples=20_000, false_alarm=1e-3, bits=SeededBits(1))
    assert verdict.caught_by is None, verdict
    assert verdict.law is not None
    assert verdict.law > 1e-4


def test_noise_has_its_moments() -> None:
    """Sums over the laws themselves: a/(1-a)^2 twice for Laplace noise of e^{-1/scale} = a."""
    dice, count = np.random.default_rng(1), 400_000
    a = np.exp(-1 / 2.5)
    assert np.var(laplace(2.5, count, dice)) == pytest.approx(2 * a / (1 - a) ** 2, rel=0.02)
    assert np.var(gaussian(3.0, count, dice)) == pytest.approx(9.0, rel=0.02)
    assert np.var(gaussian(5000.0, count, dice)) == pytest.approx(25e6, rel=0.02)
    k = np.arange(-200, 201)
    steps = np.where(np.abs(k) < 2, 0, 1 + (np.abs(k) - 2) // 5)
    weights = np.exp(-0.75 * steps)
    variance = np.sum(weights * k**2) / np.sum(weights)
    assert np.var(staircase(Fraction(3, 4), 5, 2, count, dice)) == pytest.approx(variance, rel=0.02)
