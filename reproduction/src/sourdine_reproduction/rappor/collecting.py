"""Made-up people by the million, what was read out of their reports, and charts of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sourdine.core.display import Spec
from sourdine.core.random.bits import Bits
from sourdine.local.estimate import Counts
from sourdine.local.rappor.decode import Decoding
from sourdine.local.rappor.rappor import BloomOracle, Filters
from sourdine.report.charts.base import COLOURS, GREY, ROWS, Axis, Row, Series, across_of, colour_of, finish
from sourdine_reproduction.registry import Settings

if TYPE_CHECKING:
    import altair as alt

Floats = NDArray[np.float64]
_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class WordLaw:
    """Words with their shares of the people; words that nobody has may stand at the end."""

    words: tuple[str, ...]
    shares: Floats

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which words anybody has."""
        return self.shares > 0

    def draw(self, count: int, bits: Bits) -> NDArray[np.intp]:
        """The words of so many people, by their place in the list."""
        cuts = np.cumsum(self.shares[self.present])
        uniform = (bits.words(count) >> np.uint64(11)) * 2.0**-53
        return np.asarray(np.searchsorted(cuts[:-1], uniform * cuts[-1], side="right"), np.intp)


def collect(
    oracle: BloomOracle, law: WordLaw, people: int, *, bits: Bits, settings: Settings, label: str
) -> Counts:
    """The counts of one report by everybody, each a device of its own."""
    filters = Filters.of(oracle, law.words[: int(law.present.sum())])
    total = oracle.tally(np.zeros((0, oracle.width), np.uint8))
    for start in settings.watch(label, range(0, people, _CHUNK)):
        codes = law.draw(min(_CHUNK, people - start), bits)
        total += oracle.tally(filters.reports(codes, bits))
    return total


@dataclass(frozen=True)
class Finds:
    """How many words were found, and how many of them nobody has."""

    words: int
    false: int

    @classmethod
    def among(cls, detected: NDArray[np.bool_], law: WordLaw) -> "Finds":
        return cls(int(detected.sum()), int((detected & ~law.present).sum()))


def standing_words(decoding: Decoding, law: WordLaw) -> list[str]:
    """What became of each candidate, in a word or two."""
    named = {(True, True): PRESENT, (True, False): FALSE, (False, True): MISSED, (False, False): ABSENT}
    return [named[bool(one), bool(there)] for one, there in zip(decoding.detected, law.present, strict=True)]


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The mean of some runs, and two standard errors of it; none for a single run."""
    array = np.asarray(values, float)
    error = 2 * float(array.std(ddof=1)) / np.sqrt(len(array)) if len(array) > 1 else 0.0
    return float(array.mean()), float(error)


PRESENT, MISSED, FALSE, ABSENT = "found", "missed", "found, but absent", "absent"


_FATES = Series(
    field="fate",
    names=(PRESENT, MISSED, FALSE, ABSENT),
    colours=(COLOURS[0], COLOURS[4], COLOURS[1], "#b8c0c8"),
)
_INK = "#1d2733"


def draw_ranks(rows: Sequence[Row], *, x: Axis, y: Axis, fates: bool = True) -> Spec:
    """Estimates under `share` with bars from `lower` to `upper`, and a line of what is `true`."""
    import altair as alt

    chart = alt.Chart(alt.NamedData(ROWS))
    across = across_of(x)
    colour = colour_of(_shown(rows)) if fates else alt.value(COLOURS[0])
    up = alt.Y("lower:Q", title=y.title, scale=alt.Scale(zero=False), axis=alt.Axis(format=y.form))
    bars = chart.mark_rule(strokeWidth=1.2, opacity=0.6).encode(across, up, alt.Y2("upper:Q"), color=colour)
    points = chart.mark_point(filled=True, size=22, opacity=1).encode(
        across, alt.Y("share:Q", title=y.title), color=colour, tooltip=_tips(x, y)
    )
    truth = chart.transform_filter("isValid(datum.true)").mark_line(color=_INK, strokeWidth=1.5)
    return finish(alt.layer(bars, points, truth.encode(across, alt.Y("true:Q", title=y.title))), rows)


def draw_names(rows: Sequence[Row], *, x: Axis) -> Spec:
    """The same with a name a row: a tick stands at the truth."""
    import altair as alt

    chart = alt.Chart(alt.NamedData(ROWS))
    names = [str(row["word"]) for row in rows]
    up = alt.Y("word:N", title=None, sort=names, axis=alt.Axis(labelLimit=150, grid=False))
    low = alt.X("lower:Q", title=x.title, axis=alt.Axis(format=x.form, tickCount=6))
    colour = colour_of(_shown(rows))
    label = Axis(field="word", title=" ")
    bars = chart.mark_rule(strokeWidth=1.5, opacity=0.7).encode(low, alt.X2("upper:Q"), up, colour)
    points = chart.mark_point(filled=True, size=34, opacity=1).encode(
        alt.X("share:Q", title=x.title), up, colour, tooltip=_tips(label, x)
    )
    truth = chart.mark_tick(color=_INK, thickness=2, size=12).encode(alt.X("true:Q", title=x.title), up)
    return {**finish(alt.layer(bars, points, truth), rows), "height": 17 * len(rows)}


def draw_finds(rows: Sequence[Row], *, names: tuple[str, str]) -> Spec:
    """Stacked bars of true and false finds by `rule`, with two standard errors around their sum."""
    import altair as alt

    chart = alt.Chart(alt.NamedData(ROWS))
    rules = list(dict.fromkeys(str(row["rule"]) for row in rows))
    up = alt.Y("rule:N", title=None, sort=rules, axis=alt.Axis(labelLimit=170, grid=False))
    series = Series(field="kind", names=names, colours=(COLOURS[0], COLOURS[1]))
    tips = [
        alt.Tooltip("rule:N", title=" "),
        alt.Tooltip("kind:N", title=" "),
        alt.Tooltip("count:Q", title="strings", format=".3~g"),
    ]
    bars = chart.mark_bar().encode(
        alt.X("count:Q", title="strings found, on average"),
        up,
        _squares(series),
        order=alt.Order("place:Q"),
        tooltip=tips,
    )
    ends = chart.transform_filter("datum.low < datum.high").mark_rule(color=_INK, strokeWidth=1.5)
    around = ends.encode(alt.X("low:Q", title="strings found, on average"), alt.X2("high:Q"), up)
    return {**finish(alt.layer(bars, around), rows), "height": 34 * len(rules)}


def draw_bits(rows: Sequence[Row], *, size: int, stages: tuple[str, ...], names: tuple[str, str]) -> Spec:
    """Strips of bits, a stage below the other; only ones are drawn, those that the word set in a colour."""
    import altair as alt

    chart = alt.Chart(alt.NamedData(ROWS))
    ends = [0, *(size * i // 4 for i in (1, 2, 3)), size]
    across = alt.X(
        "bit:Q",
        title="bit of the filter",
        scale=alt.Scale(domain=[0, size], nice=False),
        axis=alt.Axis(values=ends, grid=False),
    )
    up = alt.Y(
        "stage:N", title=None, sort=list(stages), scale=alt.Scale(paddingInner=0.3), axis=_stage_axis()
    )
    series = Series(field="kind", names=names, colours=(COLOURS[1], GREY))
    tips = [
        alt.Tooltip("stage:N", title=" "),
        alt.Tooltip("bit:Q", title="bit"),
        alt.Tooltip("kind:N", title=" "),
    ]
    bars = chart.mark_rect().encode(across, alt.X2("end:Q"), up, _squares(series), tooltip=tips)
    return {**finish(alt.layer(bars), rows), "height": 200}


def _stage_axis() -> "alt.Axis":
    import altair as alt

    return alt.Axis(labelLimit=120, grid=False, ticks=False, domain=False)


def _squares(series: Series) -> "alt.Color":
    """Colours of areas, with squares in the legend instead of strokes."""
    return colour_of(series).legend(orient="bottom", symbolType="square", labelLimit=0)


def _shown(rows: Sequence[Row]) -> Series:
    """The fates that occur."""
    there = {row["fate"] for row in rows}
    places = [i for i, name in enumerate(_FATES.names) if name in there]
    return Series(
        field=_FATES.field,
        names=tuple(_FATES.names[i] for i in places),
        colours=tuple(_FATES.colours[i] for i in places),
    )


def _tips(label: Axis, measure: Axis) -> "list[alt.Tooltip]":
    import altair as alt

    kind = "N" if label.field == "word" else "Q"
    return [
        alt.Tooltip(f"{label.field}:{kind}", title=label.title),
        alt.Tooltip("true:Q", title="true", format=measure.form),
        alt.Tooltip("share:Q", title="estimated", format=measure.form),
        alt.Tooltip("lower:Q", title="from", format=measure.form),
        alt.Tooltip("upper:Q", title="to", format=measure.form),
    ]
