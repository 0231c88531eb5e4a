"""One legend for several charts whose colours mean the same."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sourdine.core.figure import Spec

Legend = tuple[tuple[str, str], ...]  # names, and their colours


def legend_of(chart: Spec) -> Legend:
    """What the colours of a chart mean, where it says so below itself; else nothing.

    >>> colour = {"field": "who", "scale": {"domain": ["a", "b"], "range": ["red", "blue"]}, "legend": {}}
    >>> legend_of({"layer": [{"encoding": {"color": colour}}]})
    (('a', 'red'), ('b', 'blue'))
    """
    for colour in _colours(chart):
        scale = colour.get("scale", {})
        if colour.get("legend") is not None and "domain" in scale and "range" in scale:
            return tuple(zip(scale["domain"], scale["range"], strict=False))
    return ()


def common_legend(charts: Sequence[Spec]) -> Legend:
    """The legend that holds for all charts that have one, if two say the same."""
    legends = [legend for chart in charts if (legend := legend_of(chart))]
    longest = max(legends, key=len, default=())
    if len(legends) < 2 or not all(set(each) <= set(longest) for each in legends):
        return ()
    colours = {colour for _, colour in longest}
    others = (_fixed(chart) for chart in charts if not legend_of(chart))
    return () if any(colours & each for each in others) else longest  # where blue is just blue


def without_legend(chart: Spec, common: Legend) -> Spec:
    """A chart as it is drawn below a legend: one that says nothing more has none of its own."""
    legend = legend_of(chart)
    if not legend or not set(legend) <= set(common):
        return chart
    bare: Any = _without(chart)
    return dict(bare)


def _fixed(chart: Spec) -> set[str]:
    """The colours of marks that mean nothing."""
    layers = chart.get("layer")
    marks = [layer.get("mark") for layer in layers] if isinstance(layers, list) else [chart.get("mark")]
    return {str(mark["color"]) for mark in marks if isinstance(mark, dict) and "color" in mark}


def _colours(part: object) -> Iterator[dict[str, Any]]:
    """The colour channels of a chart and of its layers; datasets are not looked through."""
    if isinstance(part, Mapping):
        for key, inner in part.items():
            if key == "color" and isinstance(inner, dict) and "field" in inner:
                yield inner
            elif key in ("encoding", "layer", "spec"):
                yield from _colours(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _colours(inner)


def _without(part: object) -> object:
    if isinstance(part, Mapping):
        return {
            key: {**inner, "legend": None}
            if key == "color" and isinstance(inner, dict) and "field" in inner
            else _without(inner)
            if key in ("encoding", "layer", "spec")
            else inner
            for key, inner in part.items()
        }
    return [_without(inner) for inner in part] if isinstance(part, list) else part
