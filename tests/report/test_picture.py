from sourdine.report.charts import Axis, Series, draw_lines
from sourdine.report.page import Figure
from sourdine.report.picture import picture


def test_a_figure_becomes_a_png() -> None:
    rows = [{"x": float(i), "y": float(i * i), "who": "a"} for i in range(5)]
    chart = draw_lines(
        rows,
        x=Axis(field="x", title="steps"),
        y=Axis(field="y", title="cost"),
        series=Series(field="who", names=("a",)),
    )
    figure = Figure(title="A long title that says the finding. " * 4, chart=chart)
    found = picture(figure)
    assert figure._repr_png_() == found  # what a notebook shows
    assert found.startswith(b"\x89PNG")
    width, height = (int.from_bytes(found[at : at + 4], "big") for at in (16, 20))
    assert width > 1000
    assert height > 400
