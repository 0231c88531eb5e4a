"""Accountants: monoids over the laws of privacy losses; what changes a loss; what is spent."""

from typing import TYPE_CHECKING

from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine.accounting.accountant import Accountant, Bracket
    from sourdine.accounting.approximate import (
        Approximate,
        Point,
        Pure,
        advanced_composition,
        known,
        known_at,
    )
    from sourdine.accounting.attack_risk import (
        AttackLimit,
        attack_advantage,
        attack_true_positives,
        calibrate_plan_to_attack,
        calibrate_to_attack,
        noise_for_attack,
    )
    from sourdine.accounting.calibration import (
        ForError,
        calibrate_noise,
        calibrate_plan,
        epsilon_for_error,
        uses_within,
    )
    from sourdine.accounting.dpsgd.calibration import epochs_within, noise_for_training, steps_within
    from sourdine.accounting.dpsgd.cost import AtOrder, TrainingCost, cost_of_steps, cost_of_training
    from sourdine.accounting.dpsgd.sweep import dpsgd_epsilons
    from sourdine.accounting.dpsgd.training import Sampler, Training, dpsgd_epsilon, noise_for
    from sourdine.accounting.gaussian_dp import dominating_square, gdp_epsilon, mu_of_epsilon
    from sourdine.accounting.joint import together
    from sourdine.accounting.odometer import odometer_epsilon
    from sourdine.accounting.pld.accountant import PLD
    from sourdine.accounting.rdp.accountant import DENSE_ORDERS, SOURCE_ORDERS, Conversion, Renyi
    from sourdine.accounting.shuffling.blanket import Favours, blanket_model
    from sourdine.accounting.shuffling.clones import shuffle_model, shuffle_model_bound
    from sourdine.accounting.shuffling.epochs import shuffled_attack, shuffled_epoch
    from sourdine.accounting.spend import DisjointPart, Spend, block_loss, plan_cost
    from sourdine.accounting.subsampling.allocation import random_allocation
    from sourdine.accounting.subsampling.fixed_size import fixed_size
    from sourdine.accounting.subsampling.mixture import poisson_group, poisson_replace
    from sourdine.accounting.subsampling.poisson import poisson
    from sourdine.accounting.subsampling.samplers import (
        FixedSize,
        Poisson,
        PoissonGroup,
        PoissonReplace,
        RandomAllocation,
        Sampling,
        Shuffled,
        TruncatedPoisson,
    )
    from sourdine.accounting.subsampling.truncated import truncated_poisson
    from sourdine.accounting.transforms import group, group_distance, parallel
    from sourdine.accounting.zcdp import ZeroConcentrated

_HOMES = {
    "accountant": (
        "Accountant",
        "Bracket",
    ),
    "approximate": (
        "Approximate",
        "Point",
        "Pure",
        "advanced_composition",
        "known",
        "known_at",
    ),
    "attack_risk": (
        "AttackLimit",
        "attack_advantage",
        "attack_true_positives",
        "calibrate_plan_to_attack",
        "calibrate_to_attack",
        "noise_for_attack",
    ),
    "calibration": (
        "ForError",
        "calibrate_noise",
        "calibrate_plan",
        "epsilon_for_error",
        "uses_within",
    ),
    "dpsgd.calibration": (
        "epochs_within",
        "noise_for_training",
        "steps_within",
    ),
    "dpsgd.cost": (
        "AtOrder",
        "TrainingCost",
        "cost_of_steps",
        "cost_of_training",
    ),
    "dpsgd.sweep": ("dpsgd_epsilons",),
    "dpsgd.training": (
        "Sampler",
        "Training",
        "dpsgd_epsilon",
        "noise_for",
    ),
    "gaussian_dp": (
        "dominating_square",
        "gdp_epsilon",
        "mu_of_epsilon",
    ),
    "odometer": ("odometer_epsilon",),
    "pld.accountant": ("PLD",),
    "joint": ("together",),
    "rdp.accountant": (
        "DENSE_ORDERS",
        "SOURCE_ORDERS",
        "Conversion",
        "Renyi",
    ),
    "shuffling.blanket": (
        "Favours",
        "blanket_model",
    ),
    "shuffling.clones": (
        "shuffle_model",
        "shuffle_model_bound",
    ),
    "shuffling.epochs": (
        "shuffled_attack",
        "shuffled_epoch",
    ),
    "spend": (
        "DisjointPart",
        "Spend",
        "block_loss",
        "plan_cost",
    ),
    "subsampling.allocation": ("random_allocation",),
    "subsampling.fixed_size": ("fixed_size",),
    "subsampling.mixture": (
        "poisson_group",
        "poisson_replace",
    ),
    "subsampling.poisson": ("poisson",),
    "subsampling.samplers": (
        "FixedSize",
        "Poisson",
        "PoissonGroup",
        "PoissonReplace",
        "RandomAllocation",
        "Sampling",
        "Shuffled",
        "TruncatedPoisson",
    ),
    "subsampling.truncated": ("truncated_poisson",),
    "transforms": (
        "group",
        "group_distance",
        "parallel",
    ),
    "zcdp": ("ZeroConcentrated",),
}
__getattr__ = late(__name__, _HOMES)

__all__ = [
    "DENSE_ORDERS",
    "PLD",
    "SOURCE_ORDERS",
    "Accountant",
    "Approximate",
    "AtOrder",
    "AttackLimit",
    "Bracket",
    "Conversion",
    "DisjointPart",
    "Favours",
    "FixedSize",
    "ForError",
    "Point",
    "Poisson",
    "PoissonGroup",
    "PoissonReplace",
    "Pure",
    "RandomAllocation",
    "Renyi",
    "Sampler",
    "Sampling",
    "Shuffled",
    "Spend",
    "Training",
    "TrainingCost",
    "TruncatedPoisson",
    "ZeroConcentrated",
    "advanced_composition",
    "attack_advantage",
    "attack_true_positives",
    "blanket_model",
    "block_loss",
    "calibrate_noise",
    "calibrate_plan",
    "calibrate_plan_to_attack",
    "calibrate_to_attack",
    "cost_of_steps",
    "cost_of_training",
    "dominating_square",
    "dpsgd_epsilon",
    "dpsgd_epsilons",
    "epochs_within",
    "epsilon_for_error",
    "fixed_size",
    "gdp_epsilon",
    "group",
    "group_distance",
    "known",
    "known_at",
    "mu_of_epsilon",
    "noise_for",
    "noise_for_attack",
    "noise_for_training",
    "odometer_epsilon",
    "parallel",
    "plan_cost",
    "poisson",
    "poisson_group",
    "poisson_replace",
    "random_allocation",
    "shuffle_model",
    "shuffle_model_bound",
    "shuffled_attack",
    "shuffled_epoch",
    "steps_within",
    "together",
    "truncated_poisson",
    "uses_within",
]
