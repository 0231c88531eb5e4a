"""Passes over a table: which lines of a plan share one, with which keys, and what it finds before noise."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sourdine.core.random.bits import Bits
from sourdine.frames.aggregate import MOST_GROUPS
from sourdine.frames.contributions import with_keys
from sourdine.frames.keys import TEXT, Keys
from sourdine.frames.source import Source
from sourdine.tables.measurements.measurement import ChosenKeys, Exact, PlannedMeasurement
from sourdine.tables.plan import ReleasePlan

_FEW = 1 << 13  # groups that an engine keeps as quickly as a handful
Scan = Sequence[PlannedMeasurement]


def scans(plan: ReleasePlan) -> list[Scan]:
    """The lines of a plan by the passes over the table they need.

    Lines about the same records are summed in one pass, as long as all their keys together make few groups.
    """
    passes: list[list[PlannedMeasurement]] = []
    for line in plan.lines:
        for scan in passes:
            if _together([*scan, line], plan):
                scan.append(line)
                break
        else:
            passes.append([line])
    return list(passes)


def _together(lines: Scan, plan: ReleasePlan) -> bool:
    """Whether one pass over the table may serve these lines."""
    measured = [line.measurement for line in lines]
    first = measured[0].scope
    if any(each.alone for each in measured):
        return False
    if any((each.scope.where, each.scope.open) != (first.where, first.open) for each in measured):
        return False
    if all(each.scope == first and not each.axes for each in measured):
        return True
    return math.prod(dict(size for each in measured for size in each.sizes(plan.schema)).values()) <= _FEW


def keyed(scan: Scan, source: Source, keys: Keys) -> tuple[Scan, Source]:
    """Lines that know the keys which were chosen for them, and the table with those keys."""
    scope, others = scan[0].measurement.scope, all(line.measurement.others for line in scan)
    names = tuple(source.schema.text(name).other or "" for name in scope.open)
    others = others and all(names)
    table, by = with_keys(source, scope.open, keys, others=others)
    rest = Keys.of_columns(*(np.array([name], dtype=TEXT) for name in names))
    known = ChosenKeys(names=Keys.joined([keys, rest]) if others else keys, by=by)
    return [_with_chosen(line, known) for line in scan], table


def _with_chosen(line: PlannedMeasurement, chosen: ChosenKeys) -> PlannedMeasurement:
    measured = line.measurement
    return replace(line, measurement=replace(measured, scope=replace(measured.scope, chosen=chosen)))


def most_keys(line: PlannedMeasurement, plan: ReleasePlan) -> int:
    """How many chosen keys are answered at most, so that no query has too many groups."""
    selection = line.measurement.scope.selection
    sharing = [each.measurement for each in plan.lines if each.measurement.scope.selection == selection]
    groups = max(measured.known_groups(plan.schema) for measured in sharing)
    most = max(1, MOST_GROUPS // groups - 1)  # beside the others
    return min(most, *(each.most_keys for each in sharing))


def exact_of(scan: Scan, plan: ReleasePlan, source: Source, bits: Bits) -> list[Exact]:
    """What one pass over the table finds, before noise, for each line.

    It is how many units have each key, or the values of each group in order, or totals.

    Nobody may see it. `sourdine audit plan` asks for it of made-up tables.
    """
    first, *beside = (line.measurement for line in scan)
    return first.exact(source, plan.unit, bits, beside)
