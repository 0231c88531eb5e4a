"""The statistics that can be asked for, one class each."""

import difflib

from sourdine.core.errors import InvalidParameter
from sourdine.tables.statistics.base import Chart, Scale, Statistic, Style, listed
from sourdine.tables.statistics.counts import Contingency, Count, Histogram, Units
from sourdine.tables.statistics.hierarchy import Hierarchy
from sourdine.tables.statistics.keys import Top
from sourdine.tables.statistics.moments import Mean, Proportion, StdDev, Sum, Variance
from sourdine.tables.statistics.pairs import Correlation, Covariance, Regression, WeightedMean, WeightedSum
from sourdine.tables.statistics.quantiles import Quantiles

STATISTICS = listed(
    Count,
    Units,
    Sum,
    Mean,
    Variance,
    StdDev,
    Proportion,
    WeightedMean,
    WeightedSum,
    Covariance,
    Correlation,
    Regression,
    Histogram,
    Contingency,
    Quantiles,
    Top,
    Hierarchy,
)
BY_KIND = {str(each.model_fields["kind"].default): each for each in STATISTICS}
QUALITY = "quality"  # the kind of answers about records that do not fit, which nobody asks for


COMPUTED = {  # of answers, by tables.comparison
    "difference": Style(),
    "ratio": Style(),
    "share": Style(scale=Scale.SHARE),
    "change": Style(),
    "formula": Style(),
}


def __getattr__(name: str) -> object:
    """Name the statistic that was meant by another name, such as Median."""
    classes = {each.__name__: each for each in STATISTICS}
    words = {word: name for name, each in classes.items() for word in (name.lower(), *each.other_names)}
    near = difflib.get_close_matches(name.lower(), words, n=1)
    meant = f" Did you mean {classes[words[near[0]]].how()}?" if near else ""
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'.{meant}", name=name)


def style_of(kind: str) -> Style:
    """How answers of a kind are shown."""
    if kind in COMPUTED:
        return COMPUTED[kind]
    return Style(scale=Scale.COUNT) if kind == QUALITY else _of_kind(kind).style


def bounded(kind: str) -> bool:
    """Whether every answer of a kind has intervals."""
    return kind == QUALITY or (kind not in COMPUTED and _of_kind(kind).bounded)


def _of_kind(kind: str) -> type[Statistic]:
    if kind not in BY_KIND:
        raise InvalidParameter(f"There is no statistic '{kind}'. It is one of {', '.join(BY_KIND)}.")
    return BY_KIND[kind]


__all__ = [
    "BY_KIND",
    "COMPUTED",
    "STATISTICS",
    "Chart",
    "Contingency",
    "Correlation",
    "Count",
    "Covariance",
    "Hierarchy",
    "Histogram",
    "Mean",
    "Proportion",
    "Quantiles",
    "Regression",
    "Scale",
    "Statistic",
    "StdDev",
    "Style",
    "Sum",
    "Top",
    "Units",
    "Variance",
    "WeightedMean",
    "WeightedSum",
    "bounded",
    "style_of",
]
