"""What every statistic promises, whichever it is: each is run over by its examples, and none is left out."""

import math
import tomllib
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from sourdine.audit.plans import audit_plan
from sourdine.audit.plans.engines import ENGINES
from sourdine.core.format import in_files
from sourdine.frames import PrivacyUnit, Schema, Source, open_source
from sourdine.report.charts.answers import draw_answer
from sourdine.report.finding import finding, named_rows
from sourdine.tables import Answer, Answers, Privacy, Query, ReleasePlan, forecasts
from sourdine.tables.intervals import GroupEstimate
from sourdine.tables.publication import _answer, _plain
from sourdine.tables.release import _carry_out
from sourdine.tables.statistics import BY_KIND, STATISTICS, Statistic, Style
from sourdine.testing import SeededBits
from tests.random_plans import FORMS, KINDS, random_plan
from tests.statistics import ALARM
from tests.tables.statistics.truths import KEYS, TRUTHS

COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "integer", "lower": 20, "upper": 83},
    "pay": {"type": "real", "lower": -8.0, "upper": 8.0, "granularity": 0.25},
    "site": {"type": "category", "keys": KEYS["site"]},
    "well": {"type": "flag"},
}
GROUPS = 64
SCHEMA = Schema.read({**COLUMNS, "group": {"type": "category", "keys": list(range(GROUPS))}})
CONFIDENCE = 0.9
IDS = list(BY_KIND)


def examples() -> list[Any]:
    """The last example of every form, which is mostly the least plain."""
    last = {each.form: each for kind in STATISTICS for each in kind.examples(Schema.read(COLUMNS))}
    return [pytest.param(each, id=form.replace(" ", "_")) for form, each in last.items()]


def records(size: int = 96) -> list[dict[str, Any]]:
    """The records of one group: numbers spread evenly between their bounds, sites unlike often."""
    return [
        {
            "age": 20 + (37 * i) % 64,
            "pay": -8 + 0.25 * ((29 * i) % 65),
            "site": "n" if i % 12 < 7 else "s" if i % 12 < 11 else "e",
            "well": i % 3 == 0,
            "who": i,
        }
        for i in range(size)
    ]


def source_of(held: list[dict[str, Any]]) -> Source:
    """Every group holds the same records."""
    rows = [{**each, "group": group} for group in range(GROUPS) for each in held]
    return open_source(pa.Table.from_pylist(rows), SCHEMA)


@pytest.fixture(scope="module")
def source() -> Source:
    return source_of(records())


def plan_of(asked: Statistic, epsilon: float, confidence: float = CONFIDENCE) -> ReleasePlan:
    return ReleasePlan(
        schema=SCHEMA,
        queries=(Query(name="q", ask=(asked,), by=("group",)),),
        privacy=Privacy(epsilon=Fraction(epsilon)),
        size=GROUPS * len(records()),
        confidence=confidence,
        quality=False,
    )


def answered(asked: Statistic, source: Source, epsilon: float, confidence: float = CONFIDENCE) -> Answer:
    (answer,) = _carry_out(plan_of(asked, epsilon, confidence), source, bits=SeededBits(7)).values.each
    return answer


def truth_of(asked: Statistic, answer: Answer) -> np.ndarray:
    """The truth for every key of an answer, as all groups have it."""
    truth = TRUTHS[asked.kind](records(), asked)
    inner = len(answer.columns) - len(asked.adds)
    return np.array([truth[key[inner:]] for key in answer.keys])


# --- what it says of itself


@pytest.mark.parametrize("kind", STATISTICS, ids=IDS)
def test_says_how_it_is_asked_for_and_shown(kind: type[Statistic]) -> None:
    name = str(kind.model_fields["kind"].default)
    assert BY_KIND[name] is kind
    assert kind.__doc__
    assert isinstance(kind.style, Style)
    with in_files():
        asked = tomllib.loads(f"ask = [{kind.how()}]")["ask"]
    (found,) = Query.read({"name": "q", "ask": asked}).ask
    assert isinstance(found, kind)
    assert found == eval(kind.how(), {kind.__name__: kind})  # and in Python
    assert not set(kind.other_names) & set(BY_KIND)
    assert name in TRUTHS, "write what it is in tests/tables/statistics/truths.py"


@pytest.mark.parametrize("asked", examples())
def test_an_example_survives_json_and_fits_its_schema(asked: Statistic) -> None:
    assert type(asked).model_validate_json(asked.model_dump_json()) == asked
    asked.check(SCHEMA, "q")
    assert asked.label
    assert asked.unit_of_measure(PrivacyUnit())
    assert set(asked.about) <= set(SCHEMA.columns)
    with pytest.raises(Exception, match="frozen"):
        asked.kind = "another"


def test_a_statistic_that_lacks_a_method_cannot_be_asked_for() -> None:
    class Half(Statistic):
        kind: str = "half"

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


# --- what it is worth


@pytest.mark.parametrize("asked", examples())
def test_tells_the_truth_where_there_is_hardly_any_noise(asked: Statistic, source: Source) -> None:
    """At a large epsilon every value is the exact one, but for what little noise is left."""
    answer = answered(asked, source, 1 << 9, 1 - 1e-6)
    truth, found = truth_of(asked, answer), answer.estimate
    span = asked.span(SCHEMA) or (0.0, float(np.abs(truth).max()))
    assert found.value == pytest.approx(truth, abs=0.04 * (span[1] - span[0]))
    if answer.bounded:
        assert np.all((found.lower <= truth + 1e-9) & (truth <= found.upper + 1e-9))
    else:
        assert not type(asked).bounded
    shown = {key[: len(answer.columns) - len(asked.adds)] for key in answer.keys}
    assert len(shown) == GROUPS


@pytest.mark.parametrize("asked", examples())
def test_intervals_and_forecasts_hold_as_often_as_they_say(asked: Statistic, source: Source) -> None:
    answer, (forecast,) = answered(asked, source, 2), forecasts(plan_of(asked, 2))
    truth, found = truth_of(asked, answer), answer.estimate
    each = (GROUPS, -1)
    if asked.form == "contingency":  # cells first, then every margin
        cells = GROUPS * 6
        truth, found = (
            truth[:cells],
            GroupEstimate(found.value[:cells], found.lower[:cells], found.upper[:cells]),
        )
    pick = (np.arange(GROUPS), np.arange(GROUPS) % (len(truth) // GROUPS))  # one a group: others share noise
    least = binom.ppf(ALARM, GROUPS, CONFIDENCE)
    if answer.bounded:
        wide = found.upper - found.lower
        inside = ((found.lower <= truth + 1e-9) & (truth <= found.upper + 1e-9)).reshape(each)
        assert inside[pick].sum() >= least
        beside = truth + wide + 1
        assert ((found.lower <= beside) & (beside <= found.upper)).reshape(each)[pick].sum() < least
    if forecast.error is not None and forecast.measure != "ranks" and asked.kind != "top":
        part = 100 if forecast.measure == "percentage points" else 1
        off = (np.abs(found.value - truth) * part).reshape(each)
        assert (off[pick] <= forecast.error + 1e-6 * abs(forecast.error) + 0.5).sum() >= least


@pytest.mark.parametrize("asked", examples())
def test_an_answer_is_shown_and_kept(asked: Statistic, source: Source) -> None:
    answer = answered(asked, source, 2)
    assert finding(answer, CONFIDENCE)
    draw_answer(answer)
    assert len(list(named_rows(Answers((answer,), CONFIDENCE)))) == len(answer.keys)
    assert _plain(_answer(_plain(answer))) == _plain(answer)
    assert len(answer.columns) == len(answer.keys[0])
    span = asked.span(SCHEMA)
    assert span is None or np.all((answer.estimate.value >= span[0]) & (answer.estimate.value <= span[1]))


# --- how far a unit moves it


# they are read off the same sums as others, which are moved as far
SAME_SUMS = ("variance", "deviation", "correlation", "regression", "weighted_sum")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(each, id=name, marks=[pytest.mark.slow] if name in SAME_SUMS else [])
        for name, each in zip(IDS, STATISTICS, strict=True)
    ],
)
def test_neighbours_lie_within_the_declared_distance(kind: type[Statistic]) -> None:
    form = next(form for form, held in FORMS.items() if held is kind)
    assert audit_plan(random_plan(form, 1), pairs=15, engines=["duckdb"], seed=5).violations == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_lie_within_the_declared_distance_on_every_engine(kind: str) -> None:
    for seed, engine in enumerate(name for name in ENGINES if not ENGINES[name].lacks and name != "spark"):
        found = audit_plan(random_plan(kind, 20 + seed), pairs=60, engines=[engine], seed=seed)
        assert [each.words for each in found.violations[:3]] == []


@pytest.mark.parametrize("asked", examples())
def test_what_serves_another_measurement_costs_no_less(asked: Statistic) -> None:
    """Of two that are measured together, the one that is left is the one that a unit moves farther."""
    for beside in (BY_KIND["count"](), BY_KIND["sum"](column="age"), BY_KIND["variance"](column="age")):  # type: ignore[call-arg]
        query = Query(name="q", ask=(asked, beside) if asked.label != beside.label else (asked,))
        wanted = query.wanted(SCHEMA)
        held = [each for each, _ in query.measurements(SCHEMA)]
        assert all(each in held for each in wanted.values())
        assert math.isclose(sum(float(share) for _, share in query.measurements(SCHEMA)), 1.0)
        for each in query.ask:
            least = each.measurement(wanted[each.label].scope, SCHEMA)
            assert wanted[each.label].serves(least, SCHEMA)
