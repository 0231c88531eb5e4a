import json
import math
from fractions import Fraction

import pytest

from sourdine.accounting import PLD, Bracket, Sampler, Training
from sourdine.accounting.explain import DEPLOYMENTS, explain_cost, explain_guarantee, explain_training
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import RhoLaw
from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import PrivacyLoss

SEED = Training(size=60000, batch_size=64, noise_multiplier=1.0, epochs=15)


def test_one_epsilon() -> None:
    explanation = explain_guarantee(Fraction(117, 100))
    assert explanation.epsilon == Bracket(1.17, 1.17)
    assert explanation.chance == 0
    assert explanation.reach == pytest.approx(1.17)
    assert explanation.premium == pytest.approx(2000 * math.exp(1.17))
    assert not explanation.whole


def test_an_epsilon_with_a_delta_pays_a_little_for_its_exceptions() -> None:
    explanation = explain_guarantee(1, 1e-5)
    assert explanation.chance == pytest.approx(1e-3)
    assert explanation.reach == pytest.approx(1 - math.log1p(-0.01))
    assert explain_guarantee(1, 0.25).chance == 0.5
    assert explain_guarantee(10_000, 1e-5).reach == pytest.approx(10_000 - math.log1p(-0.01))


def test_the_seed_run() -> None:
    explanation = explain_training(SEED, 1e-5)
    assert 0.6111 in explanation.epsilon
    assert explanation.reach < explanation.epsilon.upper
    assert explanation.posterior(0.5).upper < 0.648
    assert explanation.whole
    assert explanation.neighbours is Neighbours.ADD_REMOVE
    assert explanation.premium < 2000 * math.exp(explanation.epsilon.upper)


def test_the_sampler_matters() -> None:
    small = {"size": 1000, "batch_size": 50, "noise_multiplier": 2.0, "epochs": 2}
    accuracies = [
        explain_training(Training(**small, sampler=sampler), 1e-5).curve.accuracy()  # type: ignore[arg-type]
        for sampler in (Sampler.POISSON, Sampler.FIXED, Sampler.SHUFFLE)
    ]
    assert accuracies == sorted(accuracies)
    assert accuracies[0] < accuracies[1]


def test_a_total_of_which_only_rho_is_known() -> None:
    """What a ledger in rho knows of its blocks."""
    loss = PrivacyLoss.symmetric(RhoLaw(0.1), neighbours=Neighbours.REPLACE, rho=0.1)
    explanation = explain_cost(PLD().lift(loss), 1e-6, subject="a ledger", unit="person")
    assert explanation.neighbours is Neighbours.REPLACE
    assert explanation.epsilon.upper < 0.1 + 2 * math.sqrt(0.1 * math.log(1e6))
    # Gaussian noise has this rho; its total variation cannot be above the bound
    assert explanation.curve.advantage > math.erf(math.sqrt(0.2) / 2 / math.sqrt(2))


@pytest.mark.parametrize("epsilon", [0, 1.17, 17.14, 10_000])
@pytest.mark.parametrize("delta", [0, 1e-5])
def test_json(epsilon: float, delta: float) -> None:
    document = explain_guarantee(epsilon, delta).to_json()
    again = json.loads(json.dumps(document, allow_nan=False))
    assert again["delta"] == delta
    assert len(again["beliefs"]["bounds"]) == 11
    assert len(again["table"]["rows"]) == 11
    assert len(again["deployed"]) == len(DEPLOYMENTS)


def test_json_of_the_seed_run_holds_the_bounds() -> None:
    document = json.loads(json.dumps(explain_training(SEED, 1e-5).to_json()))
    rates = {rate["false_positives"]: rate["true_positives"] for rate in document["attack"]["rates"]}
    assert round(100 * rates[0.01], 2) == 1.55
    assert round(document["attack"]["accuracy"], 3) == 0.533
    assert round(document["attack"]["advantage"], 3) == 0.066
    assert document["beliefs"]["probability_of_loss_above_epsilon"] > 10 * document["delta"]


def test_deployments_rise_and_state_their_unit() -> None:
    assert [each.epsilon for each in DEPLOYMENTS] == sorted(each.epsilon for each in DEPLOYMENTS)
    found = {each.epsilon for each in DEPLOYMENTS}
    assert {4, 17.14, 2.47, 34.9, 9.98} <= found
    assert all(each.unit and each.period and each.source for each in DEPLOYMENTS)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1, 0), (1, 1), (1, -0.1), (float("nan"), 0)])
def test_bad_parameters_name_themselves(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter, match=r"'(epsilon|delta)' of explain"):
        explain_guarantee(epsilon, delta)
