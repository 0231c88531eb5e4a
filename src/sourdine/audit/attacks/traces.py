"""Traces: a few places at a few hours single out one person in a crowd (de Montjoye et al. 2013)."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.audit.attacks.attack import Arm, Attack, AttackChart, AttackResult, ChartPoint, Outcome, percent
from sourdine.audit.attacks.targets import UNIT, fresh_ledger, relation
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.frames.schema import PrivacyUnit
from sourdine.tables import Table

PEOPLE, PLACES, DAYS, HOURS = 2000, 100, 7, 24
VICTIMS = 1000
POINTS = (1, 2, 3, 4, 5, 6)
KNOWN = 4  # points, as in the published finding
EPSILON = Fraction(1)
_HAUNTS = 3  # where somebody goes beside home and work
_FINE, _COARSE = "exact place and hour", "districts of 4 places, spans of 3 hours"

Places = NDArray[np.int64]


def run(bits: Bits) -> AttackResult:
    """Follow people of whom a few points are known through traces without names."""
    traces = draw_traces(bits)
    coarse = (traces // 4)[:, ::3]
    who = exact.uniform(PEOPLE, VICTIMS, bits)
    alone = {
        name: [single(places, who, count, bits) / VICTIMS for count in POINTS]
        for name, places in ((_FINE, traces), (_COARSE, coarse))
    }
    private, crowd = release(traces, bits), busy(traces)
    hits = ours = 0
    blind = []
    for each in who:
        known = _moments(traces, KNOWN, bits)
        new = np.flatnonzero(~np.isin(traces[each], traces[each, known]))
        when = int(new[exact.uniform(len(new), 1, bits)[0]])
        fits = _fitting(traces, each, known)
        place = traces[fits[exact.uniform(len(fits), 1, bits)[0]], when]
        hits += place == traces[each, when]
        ours += busiest(private, [when], traces[each, known])[0] == traces[each, when]
        blind.append(np.mean(busiest(crowd, new, traces[each, known]) == traces[each, new]))
    chance = float(np.mean(blind))
    limit = min(1.0, math.exp(float(EPSILON)) * chance)
    four = alone[_FINE][POINTS.index(KNOWN)]
    return AttackResult(
        name=ATTACK.name,
        attacked=f"The places of {PEOPLE:,} people hour by hour for a week, without names. The attacker "
        f"knows {KNOWN} of somebody's {DAYS * HOURS} points, and wants a place that is not among them.",
        goal="people found at a new place",
        unprotected=Outcome(target="traces without names", hits=int(hits), tries=VICTIMS),
        protected=Outcome(
            target=f"counts by hour and place at epsilon {float(EPSILON):g}", hits=int(ours), tries=VICTIMS
        ),
        chance=chance,
        guess="the busiest place at the hour",
        limit=limit,
        why=f"e^{float(EPSILON):g} times a guess without that person",
        finding=f"{KNOWN} points single out {percent(four)} of the people",
        lesson="A trace is a fingerprint: no name is needed, and coarser places and hours only ask for a "
        "point or two more. Counts with noise for whole persons tell where the crowd is, and of one person "
        "no more than the crowd does.",
        charts=(
            AttackChart(
                finding=f"{KNOWN} points single out {percent(four)}; coarser traces take a few points more",
                across="points known",
                up="people whom they single out",
                points=tuple(
                    ChartPoint(name, count, share)
                    for name, shares in alone.items()
                    for count, share in zip(POINTS, shares, strict=True)
                ),
                note="The points are drawn at random from the week of the person.",
            ),
            AttackChart(
                finding="Whoever is singled out is followed; from private counts nobody is",
                across="people found at a new place",
                up="what was published",
                points=(
                    ChartPoint(Arm.UNPROTECTED, "traces without names", hits / VICTIMS, VICTIMS),
                    ChartPoint(Arm.PROTECTED, "private counts", ours / VICTIMS, VICTIMS),
                    ChartPoint(Arm.BLIND, "the busiest place", chance),
                ),
            ),
        ),
    )


def draw_traces(bits: Bits) -> Places:
    """The place of each person at each hour of a week: home at night, work by day, a few haunts between."""
    homes, works = (_place(PEOPLE, bits) for _ in range(2))
    haunts = _place(PEOPLE * _HAUNTS, bits).reshape(PEOPLE, _HAUNTS)
    hour = np.arange(DAYS * HOURS) % HOURS
    day = np.arange(DAYS * HOURS) // HOURS
    shape = (PEOPLE, DAYS * HOURS)
    often = exact.uniform(10, PEOPLE * DAYS * HOURS, bits).reshape(shape)
    where = exact.uniform(_HAUNTS, PEOPLE * DAYS * HOURS, bits).reshape(shape)
    out = np.take_along_axis(haunts, where, axis=1)
    at_work = (hour >= 9) & (hour < 17) & (day < 5)
    awake = (hour >= 7) & (hour < 22)
    places = np.where(awake & (often < 4), out, homes[:, None])
    places = np.where(at_work & (often < 8), works[:, None], places)
    return np.where(often == 9, _place(places.size, bits).reshape(shape), places)


def single(traces: Places, who: NDArray[np.int64], count: int, bits: Bits) -> int:
    """How many people are the only ones who fit so many of their points."""
    fits = [_fitting(traces, each, _moments(traces, count, bits)) for each in who]
    return sum(len(each) == 1 for each in fits)


def busy(traces: Places) -> NDArray[np.float64]:
    """How many are at each place at each hour of the day, exactly."""
    hour = np.tile(np.arange(traces.shape[1]) % HOURS, len(traces))
    counts = np.bincount(hour * PLACES + traces.reshape(-1), minlength=HOURS * PLACES)
    return counts.reshape(HOURS, PLACES).astype(float)


def busiest(counts: NDArray[np.float64], moments: Sequence[int] | Places, known: Places) -> Places:
    """The place with most people at the hour of each moment, those left out that are known."""
    crowds = counts[np.asarray(moments) % HOURS]
    crowds[:, known] = -math.inf
    busiest_places: Places = crowds.argmax(axis=1)
    return busiest_places


def release(traces: Places, bits: Bits) -> NDArray[np.float64]:
    """Counts of people by hour of the day and place; each person counts at most once an hour of the day."""
    people, moments = traces.shape
    columns = {
        "id": np.repeat(np.arange(people), moments),
        "hour": np.tile(np.arange(moments) % HOURS, people),
        "place": traces.reshape(-1),
    }
    table = Table(
        relation(columns),
        unit=PrivacyUnit(name=UNIT, column="id", max_rows=1, max_groups=HOURS),
        columns={
            "hour": {"type": "category", "keys": list(range(HOURS))},
            "place": {"type": "category", "keys": list(range(PLACES))},
        },
    )
    plan = table.plan(
        {"name": "crowd", "ask": ["count"], "by": ["hour", "place"]}, epsilon=EPSILON, quality=False
    )
    with fresh_ledger(EPSILON) as ledger:
        answer = table.release(plan, ledger, purpose="crowds", bits=bits).values["crowd"]
    values = {key: value for key, value, *_ in answer.rows()}
    return np.array([[values[hour, place] for place in range(PLACES)] for hour in range(HOURS)])


def _place(count: int, bits: Bits) -> Places:
    """Places at random, the first ones more often: the smaller of two even draws."""
    first, second = (exact.uniform(PLACES, count, bits) for _ in range(2))
    return np.minimum(first, second)


def _moments(traces: Places, count: int, bits: Bits) -> list[int]:
    """So many moments of the week, no two the same."""
    moments: list[int] = []
    while len(moments) < count:
        each = int(exact.uniform(traces.shape[1], 1, bits)[0])
        if each not in moments:
            moments.append(each)
    return moments


def _fitting(traces: Places, who: int, moments: Sequence[int]) -> NDArray[np.int64]:
    """The people who were where this one was at each of the moments."""
    return np.flatnonzero((traces[:, moments] == traces[who, moments]).all(axis=1))


ATTACK = Attack(name="traces", title="a few points single out a person's trace", run=run)
