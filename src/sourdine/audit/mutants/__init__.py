"""Deliberately broken mechanisms, one file a family: what tests the audit itself."""

from sourdine.audit.mutants import (
    choices,
    distances,
    floats,
    keys,
    noise,
    ranges,
    responses,
    reuse,
    steps,
    thresholds,
)
from sourdine.audit.mutants.mutant import Mutant, Verdict, examine

__all__ = ["Mutant", "Verdict", "all_mutants", "examine"]

_FAMILIES = (noise, distances, reuse, ranges, floats, choices, thresholds, keys, responses, steps)


def all_mutants() -> list[Mutant]:
    """Every mutant there is."""
    return [mutant for family in _FAMILIES for mutant in family.mutants()]
