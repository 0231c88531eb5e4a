"""Attacks as demonstrations on made-up people: each succeeds without protection, and fails with it."""

from types import MappingProxyType

from sourdine.audit.attacks import (
    averaging,
    differencing,
    extraction,
    homogeneity,
    inversion,
    linkage,
    local,
    reconstruction,
    skewness,
    synthetic,
    traces,
)
from sourdine.audit.attacks.attack import Attack, AttackChart, AttackResult, ChartPoint, Outcome

ATTACKS = MappingProxyType(
    {
        each.ATTACK.name: each.ATTACK
        for each in (
            linkage,
            traces,
            homogeneity,
            skewness,
            differencing,
            averaging,
            reconstruction,
            inversion,
            extraction,
            local,
            synthetic,
        )
    }
)

__all__ = ["ATTACKS", "Attack", "AttackChart", "AttackResult", "ChartPoint", "Outcome"]
