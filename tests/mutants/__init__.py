"""Deliberately broken mechanisms, one file a family: what tests the audit itself."""

from tests.mutants import (
    choices,
    distances,
    families,
    floats,
    keys,
    noise,
    ranges,
    rare,
    representation,
    responses,
    reuse,
    series,
    sparse_vector,
    steps,
)
from tests.mutants.mutant import Mutant

__all__ = ["Mutant", "all_mutants"]

_FAMILIES = (
    noise,
    distances,
    reuse,
    rare,
    ranges,
    floats,
    representation,
    choices,
    sparse_vector,
    keys,
    responses,
    steps,
    families,
    series,
)


def all_mutants() -> list[Mutant]:
    """Every mutant there is."""
    return [mutant for family in _FAMILIES for mutant in family.mutants()]
