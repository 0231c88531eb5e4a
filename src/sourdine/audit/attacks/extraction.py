"""Extraction: a model behind a service is rebuilt from its answers, and with it a record that it learnt from.

A linear model of d weights that answers with probabilities is the solution of as many equations: their logits
are linear in the weights (Tramer, Zhang, Juels, Reiter, Ristenpart 2016). Rounded answers only take more of
them. Whoever then knows all records but one label solves the equations of the training for that label.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.spend import Spend
from sourdine.audit.attacks.attack import Arm, Attack, AttackChart, AttackResult, ChartPoint, Outcome, percent
from sourdine.audit.attacks.targets import fresh_ledger, most_right
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.lazy import expit, logit
from sourdine.core.random.bits import Bits, coins
from sourdine.mechanisms import Geometric

PEOPLE, FEATURES = 200, 12  # yes-no features, and an intercept beside them
EPSILON = Fraction(1)
TRIALS = 300
DIGITS = (1, 2, 3)  # of rounded answers
QUERIES = (FEATURES + 1, 30, 100, 300, 1000)
_RIDGE = 1.0
_GAIN = 4.0  # of the probability that a score stands for

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def run(bits: Bits) -> AttackResult:
    """Rebuild the model from its answers, and then the one label that is not known."""
    people = with_intercept(coins(bits, PEOPLE * FEATURES).reshape(PEOPLE, FEATURES))
    gram = people.T @ people + _RIDGE * np.eye(FEATURES + 1)
    labels = _labels(people, bits)
    sums = people.T @ labels  # a column for each trial, with labels of its own
    weights = _learnt(gram, sums)
    exact = np.vstack([np.zeros(FEATURES), np.eye(FEATURES)])
    hits = _right(gram, _rebuilt(exact, weights, None), people, labels)
    points = []
    for digits in DIGITS:
        for many in QUERIES:
            inputs = coins(bits, many * FEATURES).reshape(many, FEATURES)
            right = _right(gram, _rebuilt(inputs, weights, digits), people, labels)
            points.append(ChartPoint(f"rounded to {digits}", many, right / TRIALS, TRIALS))
    noisy = _private(sums, bits)
    private = _learnt(gram, noisy)
    ours = _right(gram, _rebuilt(exact, private, None), people, labels)
    limit = most_right(EPSILON)
    good = [float(np.mean((people @ each > 0.5) == labels.astype(bool))) for each in (weights, private)]
    return AttackResult(
        name=ATTACK.name,
        attacked=f"A service that answers with probabilities by a linear model of {FEATURES} features, "
        f"learnt from {PEOPLE} people. The attacker asks it {FEATURES + 1} questions, solves for its "
        "weights, and then, knowing everything but one person's label, for that label.",
        goal="right guesses of the label",
        unprotected=Outcome(target="a model learnt exactly", hits=hits, tries=TRIALS),
        protected=Outcome(
            target=f"learnt with labels at epsilon {float(EPSILON):g}", hits=ours, tries=TRIALS
        ),
        chance=0.5,
        guess="a coin",
        limit=limit,
        why=f"epsilon {float(EPSILON):g} for each label, whatever is asked",
        finding=f"{FEATURES + 1} answers of a service are its model, and the model tells "
        f"{percent(hits / TRIALS)} of labels that it learnt from",
        lesson="Whoever may ask a model holds the model, and rounding its answers only takes more questions. "
        "So protect what it learns from: a private model is stolen as easily, and tells no more about "
        f"anybody than it was paid for. Here it gives {percent(good[1])} of the people their label instead "
        f"of {percent(good[0])}; with more people it comes closer.",
        charts=(
            AttackChart(
                finding="Rounding delays the theft; noise on what is learnt stops what it would tell",
                across="questions asked of the service",
                up="right guesses of the label",
                points=(
                    *points,
                    *(ChartPoint(Arm.PROTECTED, many, ours / TRIALS, TRIALS) for many in QUERIES),
                    *(ChartPoint(Arm.MOST, many, limit) for many in QUERIES),
                ),
                log=True,
                note="Answers of the unprotected model are rounded to so many digits after the point. A coin "
                "is right half of the time.",
            ),
        ),
    )


def with_intercept(features: Flags) -> Floats:
    """Features as numbers, with a 1 before them."""
    return np.hstack([np.ones((len(features), 1)), features.astype(float)])


def serve(weights: Floats, inputs: Floats, digits: int | None) -> Floats:
    """What the service answers: probabilities, rounded if it says so."""
    outputs: Floats = expit(_GAIN * (with_intercept(inputs.astype(bool)) @ weights - 0.5))
    return outputs if digits is None else np.round(outputs, digits)


def _learnt(gram: Floats, sums: Floats) -> Floats:
    """The weights of ridge regression, from the sums of features and of labels."""
    return np.asarray(np.linalg.solve(gram, sums), np.float64)


def _rebuilt(inputs: NDArray[np.float64] | Flags, weights: Floats, digits: int | None) -> Floats:
    """The weights that explain the answers best, by least squares on their logits."""
    near = 1e-12 if digits is None else 10.0**-digits / 2  # a rounded 0 is none
    outputs = np.clip(serve(weights, np.asarray(inputs, float), digits), near, 1 - near)
    scores = logit(outputs) / _GAIN + 0.5
    solution = np.linalg.lstsq(with_intercept(np.asarray(inputs, bool)), scores, rcond=None)[0]
    return np.asarray(solution, np.float64)


def _right(gram: Floats, weights: Floats, people: Floats, labels: Floats) -> int:
    """How often the label of the first person is right, all others being known.

    Training solved gram @ weights = sum of x y, so that what the others leave of it is x y of the first one:
    x for a yes, nothing for a no.
    """
    left = gram @ weights - people[1:].T @ labels[1:]
    first = people[0][:, None]
    nearer = np.abs(left - first).sum(axis=0) < np.abs(left).sum(axis=0)
    return int(np.count_nonzero(nearer == (labels[0] > 0)))


def _labels(people: Floats, bits: Bits) -> Floats:
    """Labels by a law of the features, in every trial anew; the first person's is a coin."""
    law = expit(people[:, 1:] @ np.where(np.arange(FEATURES) % 2, 1.5, -1.5))
    shares = (bits.words(PEOPLE * TRIALS) >> np.uint64(11)).reshape(PEOPLE, TRIALS) * 2.0**-53
    labels = (shares < law[:, None]).astype(float)
    labels[0] = coins(bits, TRIALS)
    return labels


def _private(sums: Floats, bits: Bits) -> Floats:
    """The sums that the model is learnt from, with noise for one label: features are public."""
    reach = FEATURES + 1  # a label moves each of so many sums by 1 at most
    mechanism = Geometric(scale=reach / EPSILON)
    distance = Distance.l1(reach, coordinates=reach, neighbours=Neighbours.ADD_REMOVE)
    with fresh_ledger(EPSILON) as ledger:
        spend = Spend(mechanism=mechanism, distance=distance)
        ledger.charge(spend, purpose="extraction", secure=bool(bits.secure))
    return np.asarray(mechanism.sample(np.rint(sums).astype(np.int64), bits), float)


ATTACK = Attack(
    name="extraction", title="a model rebuilt from its answers, and a label that it learnt", run=run
)
