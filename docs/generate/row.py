"""The way of a row, as a picture: `python docs/generate/row.py` writes docs/pictures/row.svg.

One column, so that it can be read on a telephone too.
"""

from dataclasses import dataclass
from html import escape
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "pictures" / "row.svg"
_WIDTH, _EDGE, _LINE = 480, 12, 19
_FAMILY = "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
_CODE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@dataclass(frozen=True)
class Step:
    """One thing that happens, in a line or two, and the modules of the package that do it."""

    title: str
    words: tuple[str, ...]
    modules: tuple[str, ...]

    @property
    def height(self) -> int:
        """How much room its box takes."""
        return 18 + _LINE * (1 + len(self.words) + len(self._code)) + 4

    @property
    def _code(self) -> tuple[str, ...]:
        """The modules in lines that fit."""
        lines = [""]
        for name in self.modules:
            longer = f"{lines[-1]}  {name}".strip()
            lines = [*lines[:-1], longer] if len(longer) <= 50 else [*lines, name]
        return tuple(lines)

    def draw(self, top: int, colour: str) -> str:
        """Its box, with a strip of its band's colour."""
        left, y = 2 * _EDGE, top + 26
        drawn = [
            f'<rect x="{left}" y="{top}" width="{_WIDTH - 2 * left}" height="{self.height}" rx="6" '
            f'fill="#fff" stroke="{colour}"/>',
            f'<rect x="{left}" y="{top}" width="6" height="{self.height}" rx="3" fill="{colour}"/>',
            f'<text x="{left + 18}" y="{y}" font-size="16" font-weight="600">{escape(self.title)}</text>',
        ]
        for place, words in enumerate(self.words, start=1):
            drawn.append(
                f'<text x="{left + 18}" y="{y + _LINE * place}" font-size="14.5">{escape(words)}</text>'
            )
        for place, code in enumerate(self._code, start=1 + len(self.words)):
            drawn.append(
                f'<text x="{left + 18}" y="{y + _LINE * place}" font-size="13" font-family="{_CODE}" '
                f'fill="#475569" xml:space="preserve">{escape(code)}</text>'
            )
        return "\n".join(drawn)


@dataclass(frozen=True)
class Band:
    """Steps that know equally much: of declarations, of records, or of what may be shown."""

    title: str
    fill: str
    colour: str
    steps: tuple[Step, ...]


WAY = (
    Band(
        "From what is declared, before any record is read",
        "#eef2ff",
        "#4f46e5",
        (
            Step(
                "A question",
                ("Read and checked once. Each statistic says the", "least measurement it can be read off."),
                ("tables/specification", "tables/query", "tables/statistics"),
            ),
            Step(
                "A plan",
                ("How far a unit moves each measurement, which", "noise that takes, what it will be worth."),
                ("tables/plan", "tables/measurement", "tables/intervals", "tables/forecast"),
            ),
            Step(
                "A charge",
                ("All spends in one line, on the disk.", "Whatever happens next, the charge stands."),
                ("tables/release", "accounting/spend", "accounting/ledger"),
            ),
        ),
    ),
    Band(
        "The row: exact, and seen by nobody",
        "#fef2f2",
        "#dc2626",
        (
            Step(
                "A record comes in",
                ("A file or a frame stays where it is: DuckDB,", "closed to all else, or Spark reads it."),
                ("frames/source", "frames/engines", "frames/csv"),
            ),
            Step(
                "It counts as whole numbers",
                (
                    "Clamped to its bounds, put on a grid, filtered.",
                    "What cannot be read is missing; none raises.",
                ),
                ("frames/cells", "frames/expressions", "frames/engines/dialect", "frames/engines/types"),
            ),
            Step(
                "Its unit counts so much and no more",
                ("Rows and groups of a unit are bounded by a", "secret order; then each group is summed."),
                ("frames/aggregate", "frames/contributions"),
            ),
        ),
    ),
    Band(
        "Noisy, and safe to show",
        "#ecfdf5",
        "#059669",
        (
            Step(
                "Noise",
                ("Drawn exactly from bits, their only source,", "and added to whole numbers."),
                ("mechanisms/laplace", "mechanisms/gaussian", "core/grid", "core/random"),
            ),
            Step(
                "Values with intervals",
                ("Each statistic reads off its own, rounded to", "what the interval is worth."),
                ("tables/intervals", "tables/statistics", "tables/answers"),
            ),
            Step(
                "A release",
                ("Tables, record, certificate and report, in a", "folder that appears whole or not at all."),
                (
                    "accounting/release",
                    "tables/publication",
                    "frames/files",
                    "core/serialization",
                    "report/pages",
                    "core/files",
                ),
            ),
        ),
    ),
)


def modules() -> tuple[str, ...]:
    """All modules and packages that the picture names."""
    return tuple(name for band in WAY for step in band.steps for name in step.modules)


def picture() -> str:
    """The picture as SVG; it loads nothing."""
    parts, top = [], _EDGE
    for band in WAY:
        inner, y = [], top + 40
        for place, step in enumerate(band.steps):
            if place:
                inner.append(_arrow(y - 18, y - 2, band.colour))
            inner.append(step.draw(y, band.colour))
            y += step.height + 20
        height = y - 8 - top
        parts += [
            f'<rect x="{_EDGE / 2}" y="{top}" width="{_WIDTH - _EDGE}" height="{height}" rx="10" '
            f'fill="{band.fill}"/>',
            f'<text x="{2 * _EDGE}" y="{top + 27}" font-size="15.5" font-weight="600" fill="{band.colour}">'
            f"{escape(band.title)}</text>",
            *inner,
        ]
        top += height + 26
        if band is not WAY[-1]:
            parts.append(_arrow(top - 24, top - 3, "#334155"))
    bottom = top - 26 + _EDGE
    drawn = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom}" width="{_WIDTH}" '
        f'height="{bottom}" font-family="{_FAMILY}" fill="#0f172a" role="img">\n'
        "<title>The way of a row, from a question to a release</title>\n"
        f'<rect width="{_WIDTH}" height="{bottom}" rx="10" fill="#fff"/>\n{drawn}\n</svg>\n'
    )


def _arrow(start: int, end: int, colour: str) -> str:
    """An arrow down the middle."""
    x = _WIDTH / 2
    return (
        f'<path d="M{x} {start}V{end - 6}" stroke="{colour}" stroke-width="2"/>'
        f'<path d="M{x - 6} {end - 8}h12l-6 8z" fill="{colour}"/>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
