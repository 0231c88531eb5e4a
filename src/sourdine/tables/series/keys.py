"""Keys of a series that nobody declared: chosen privately, once enough units came with one, and for good.

When a period is over, the units are counted that came with each key in it; now and then those of several
periods together. A key whose count reaches a threshold with noise is chosen, and is measured from that period
on. What one unit changes of all counts over the whole horizon is bounded by the declared participation, and
paid for when the series starts (docs/guarantees/series.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt

import numpy as np

from sourdine.accounting.spend import Spend
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.random.bits import Bits
from sourdine.frames.cells import fit
from sourdine.frames.contributions import key_counts, raw_text
from sourdine.frames.schema import Category, PrivacyUnit, Schema
from sourdine.frames.source import Source
from sourdine.mechanisms import PartitionThreshold
from sourdine.tables.measurement import GroupSums, Scope, plural
from sourdine.tables.series.declaration import SeriesBlock


@dataclass(frozen=True, kw_only=True)
class KeyChoice:
    """How the keys of one column are chosen over the whole horizon.

    `widths` are the numbers of periods whose units are counted together, each such count once. `scopes` are
    those of the queries that group by the column: a record counts if it counts in one of them.
    """

    column: str
    scopes: tuple[Scope, ...]
    widths: tuple[int, ...]
    mechanism: PartitionThreshold
    neighbours: Neighbours
    share: Fraction

    @property
    def spend(self) -> Spend:
        """What all choices of all periods cost together."""
        return Spend(mechanism=self.mechanism, distance=Distance.linf(1, neighbours=self.neighbours))

    def counts(self, source: Source, where: str, unit: PrivacyUnit, bits: Bits) -> dict[str, int]:
        """How many units came with each key: nobody may see it."""
        scopes = dict.fromkeys(f"({scope.sql(source)})" for scope in self.scopes)
        condition = f"{where} AND ({' OR '.join(scopes)})"
        counts = key_counts(source, [self.column], unit=unit, bits=bits, where=condition)
        return {str(key): units for (key,), units in counts.by_key().items()}

    def shown(self, counts: Mapping[str, int], bits: Bits) -> list[str]:
        """The keys whose counts reach the threshold with noise, in the order of their texts."""
        names = sorted(counts)
        passed = self.mechanism.sample(np.array([counts[name] for name in names], np.int64), bits)
        return [name for name, chosen in zip(names, passed.tolist(), strict=True) if chosen]

    def words(self, unit: str, period: str) -> str:
        """From how many units on a key is chosen, as people read it."""
        spans = " or ".join(f"one {period}" if width == 1 else f"{width} {period}s" for width in self.widths)
        return (
            f"A key of {self.column} is chosen privately when about {self.mechanism.threshold:,} "
            f"{plural(unit)} come with it in {spans}, and counts from then on."
        )


def choose_keys(
    column: str,
    scopes: tuple[Scope, ...],
    *,
    schema: Schema,
    block: SeriesBlock,
    unit: PrivacyUnit,
    neighbours: Neighbours,
    budget: Mapping[str, Fraction],
    delta: Fraction,
    share: Fraction,
) -> KeyChoice:
    """The least noise and threshold for one column, within a rho or an epsilon and a delta."""
    mechanism = PartitionThreshold.within(
        **budget,
        delta=delta,
        keys=most_counts(block, unit),
        minimum=schema.text(column).at_least or 1,
        neighbours=neighbours,
    )
    widths = count_widths(block)
    return KeyChoice(
        column=column, scopes=scopes, widths=widths, mechanism=mechanism, neighbours=neighbours, share=share
    )


def count_widths(block: SeriesBlock) -> tuple[int, ...]:
    """How many periods are counted together: one, and about the root of the horizon.

    Several only where a unit counts at most once in them, so that it moves no count by more than 1.
    """
    wide = isqrt(block.periods - 1) + 1
    apart = block.total is None and (block.times == 1 or wide <= block.separation)
    return (1, wide) if apart and wide > 1 else (1,)


def most_counts(block: SeriesBlock, unit: PrivacyUnit) -> int:
    """How many counts of all periods, keys and widths one unit may move, each by 1."""
    if block.total is not None:
        return block.total  # each needs a record of its own
    return block.times * unit.max_groups * len(count_widths(block))


def with_chosen(schema: Schema, chosen: Mapping[str, Sequence[str]]) -> Schema:
    """The schema in which the keys chosen so far are those of their columns, and the others one more.

    A column without any key stays as it is: there is nothing to group by yet.
    """
    columns = dict(schema.columns)
    for name, keys in chosen.items():
        other = schema.text(name).other
        listed = (*keys, other) if other is not None else tuple(keys)
        if listed:
            columns[name] = Category(keys=listed, missing="drop" if other is None else other)
    return Schema(columns=columns)


def measured_now(measurement: GroupSums) -> GroupSums:
    """A measurement by keys that are known by now."""
    return replace(measurement, scope=replace(measurement.scope, open=()))


def lost_records(source: Source, columns: Sequence[str]) -> str:
    """The records whose key counts, where a missing one is to be dropped though others have a name."""
    names = [
        name
        for name in columns
        if source.schema.text(name).other is not None and source.schema.text(name).missing == "drop"
    ]
    fits = [f"({fit(raw_text(source, name), source.dialect)}) IS TRUE" for name in names]
    return " AND ".join(fits) or "TRUE"
