"""The measures and the search once more, by the definitions, one class at a time."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from scipy.optimize import linprog

from sourdine.anonymity import Coded, Records

Rows = Sequence[Mapping[str, object]]


def coded(rows: Rows, quasi: Sequence[str], sensitive: Sequence[str] = ()) -> Records:
    """Records without an engine, which takes longer to start than a small table to measure.

    A value of None is left out, as with Missing.DROP.
    """
    found = Counter(tuple(row[name] for name in (*quasi, *sensitive)) for row in rows)
    columns = []
    for place, name in enumerate((*quasi, *sensitive)):
        values = sorted({key[place] for key in found} - {None})  # type: ignore[type-var]
        codes = np.array([-1 if key[place] is None else values.index(key[place]) for key in found], np.int64)
        columns.append(Coded(name, tuple(map(str, values)), codes))
    counts = np.array(list(found.values()), np.int64)
    return Records(tuple(columns[: len(quasi)]), tuple(columns[len(quasi) :]), (), counts)


def classes(rows: Rows, quasi: Sequence[str]) -> list[list[Mapping[str, object]]]:
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in quasi)].append(row)
    return list(found.values())


def law(rows: Rows, name: str) -> dict[object, Fraction]:
    counts = Counter(row[name] for row in rows)
    return {value: Fraction(count, len(rows)) for value, count in counts.items()}


def distinct(rows: Rows, name: str) -> int:
    return len({row[name] for row in rows})


def alpha(rows: Rows, name: str) -> float:
    return float(max(law(rows, name).values()))


def entropy(rows: Rows, name: str) -> float:
    return math.exp(-sum(float(p) * math.log(p) for p in law(rows, name).values()))


def recursive(rows: Rows, name: str, least: int) -> float:
    counts = sorted(Counter(row[name] for row in rows).values(), reverse=True)
    tail = sum(counts[least - 1 :])
    return counts[0] / tail if tail else math.inf


def total_variation(rows: Rows, table: Rows, name: str) -> float:
    p, q = law(table, name), law(rows, name)
    return float(sum(abs(p[value] - q.get(value, 0)) for value in p) / 2)


def delta(rows: Rows, table: Rows, name: str) -> float:
    p, q = law(table, name), law(rows, name)
    return max(abs(math.log(q[value] / p[value])) if value in q else math.inf for value in p)


def transport(rows: Rows, table: Rows, name: str, ground: Mapping[tuple[object, object], float]) -> float:
    """The earth mover's distance as the linear program that defines it."""
    p, q = law(table, name), law(rows, name)
    values = list(p)
    m = len(values)
    costs = [ground[a, b] for a in values for b in values]
    equal, right = [], []
    for i in range(m):
        row = np.zeros((m, m))
        row[i, :] = 1
        equal.append(row.ravel())
        right.append(float(p[values[i]]))
        column = np.zeros((m, m))
        column[:, i] = 1
        equal.append(column.ravel())
        right.append(float(q.get(values[i], 0)))
    cost = linprog(costs, A_eq=np.array(equal), b_eq=right).fun
    assert cost is not None
    return float(cost)


def best_levels(
    rows: Rows,
    trees: Mapping[str, Mapping[str, Sequence[str]]],
    *,
    k: int,
    allowed: int,
    sensitive: str | None = None,
    **asked: float,
) -> tuple[float, int]:
    """The least penalty over all choices of levels, and how many choices are good, by trying each."""
    names = list(trees)
    best, good = math.inf, 0
    for levels in product(*(range(len(next(iter(trees[name].values()))) + 1) for name in names)):
        lost = trial(rows, trees, levels, k, allowed, sensitive, **asked)
        if lost is not None:
            best, good = min(best, lost), good + 1
    return best, good


def poor(
    members: Rows,
    table: Rows,
    name: str,
    *,
    least: float = 1,
    entropy_l: float = 1.0,
    t: float = 1.0,
    c: float = math.inf,
    most: float = 1.0,
) -> bool:
    members = [row for row in members if row[name] is not None]
    table = [row for row in table if row[name] is not None]
    if not members:  # nothing can be learnt
        return False
    return (
        distinct(members, name) < least
        or entropy(members, name) < entropy_l - 1e-9
        or total_variation(members, table, name) > t + 1e-12
        or alpha(members, name) > most + 1e-12
        or not (c == math.inf or recursive(members, name, int(least)) < c)
    )


def trial(
    rows: Rows,
    trees: Mapping[str, Mapping[str, Sequence[str]]],
    levels: Sequence[int],
    k: int,
    allowed: int,
    sensitive: str | None,
    **asked: float,
) -> float | None:
    names = list(trees)
    said = []
    for row in rows:
        made, penalty = dict(row), 0.0
        for name, level in zip(names, levels, strict=True):
            tree = trees[name]
            label = tree[str(row[name])][level - 1] if level else row[name]
            same = sum((line[level - 1] if level else value) == label for value, line in tree.items())
            made[name] = label
            penalty += (same - 1) / (len(tree) - 1) / len(names)
        said.append((made, penalty))
    kept = said
    while kept:
        table = [made for made, _ in kept]
        bad = set()
        for members in classes(table, names):
            key = tuple(members[0][name] for name in names)
            small = len(members) < k
            if small or (sensitive is not None and poor(members, table, sensitive, **asked)):
                bad.add(key)
        if not bad:
            break
        kept = [pair for pair in kept if tuple(pair[0][name] for name in names) not in bad]
    if not kept or len(rows) - len(kept) > allowed:
        return None
    return (sum(penalty for _, penalty in kept) + len(rows) - len(kept)) / len(rows)
