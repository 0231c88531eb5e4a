"""Charts as pictures, for papers and slides."""

from sourdine.report.page import Figure

_WIDTH = 640
_SCALE = 2.0
_LINE = 80  # characters of a title on one line


def picture(figure: Figure) -> bytes:
    """A figure as PNG, with its title above; a slider stands where it begins."""
    import textwrap

    import vl_convert

    title = {"text": textwrap.wrap(figure.title, _LINE), "anchor": "start", "fontSize": 14, "offset": 12}
    told = figure.chart.get("title")
    if isinstance(told, dict) and "text" in told:
        title["subtitle"] = told["text"]
    chart = {**figure.chart, "width": _WIDTH, "background": "white", "title": title}
    return bytes(vl_convert.vegalite_to_png(chart, scale=_SCALE))
