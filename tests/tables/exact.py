"""The numbers of a release before noise, as its mechanisms are given them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from sourdine.frames import Source, ranks
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.tables import ReleasePlan
from sourdine.tables.release import _carry_out
from sourdine.tables.statistics.quantiles import TreeCounts
from sourdine.testing import SeededBits


@contextmanager
def _without_noise(seen: dict[int, list[int]]) -> Iterator[None]:
    def sample(self: Any, values: Any, bits: Any) -> Any:
        seen[id(self)] = [int(number) for number in np.asarray(values, dtype=object).ravel()]
        return np.asarray(values)

    with patch.object(Laplace, "sample", sample), patch.object(Gaussian, "sample", sample):
        yield


def exact_numbers(plan: ReleasePlan, source: Source, seed: int = 1) -> list[list[int]]:
    """For each line of a plan all its numbers; for a tree the counts of every bin of every level."""
    seen: dict[int, list[int]] = {}
    with _without_noise(seen):
        _carry_out(plan, source, bits=SeededBits(seed))
    found = []
    for line in plan.lines:
        measured = line.measurement
        if not isinstance(measured, TreeCounts):
            found.append(seen[id(line.mechanism)])
            continue
        tree = measured.tree(plan.schema)
        groups = ranks(
            source,
            by=measured.groupings(source),
            value=source.place_of(measured.column),
            unit=plan.unit,
            bits=SeededBits(seed),
            where=measured.scope.sql(source),
        )
        counts: list[int] = []
        for values in groups.values():
            held = values.values_between(0, values.size)
            for depth in range(tree.height):
                width = tree.leaf * tree.fan ** (tree.height - depth - 1)
                counts += np.bincount(held // width, minlength=tree.fan ** (depth + 1)).tolist()
        found.append(counts)
    return found
