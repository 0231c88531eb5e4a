"""What people read: tables, charts and pages that stand on their own."""

from sourdine.core.display import Figure
from sourdine.report.charts.base import Axis, Band, Series, Slider, draw_heat, draw_lines
from sourdine.report.view import Page, Section, TextTable

__all__ = [
    "Axis",
    "Band",
    "Figure",
    "Page",
    "Section",
    "Series",
    "Slider",
    "TextTable",
    "draw_heat",
    "draw_lines",
]
