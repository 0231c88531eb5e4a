"""The chapter of reproduced experiments, from what `sourdine reproduce all` left in a folder.

`make reproduce` runs both; `python docs/generate/reproduced.py FOLDER` writes the chapter alone.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from sourdine.core.figure import picture
from sourdine.experiments import find_experiments
from sourdine.experiments.cache import read
from sourdine.experiments.registry import Result
from sourdine.experiments.summary import whole
from sourdine.report.pages.page import Section
from sourdine.report.table import TextTable

CHAPTER = Path(__file__).parents[1] / "reproduced"
_SCALE = 1.25  # of the pictures, small enough to be kept with the source
_MOST = 40  # rows of a table that are shown; the rest is in its CSV
_HOW = """
Made by `make reproduce DATA=FOLDER`, which is

```text
sourdine reproduce all --data FOLDER -o reproduced
python docs/generate/reproduced.py reproduced
```

where FOLDER has the public data that some experiments need (MNIST, Pima); each says what it goes without. It
takes most of an hour on two idle cores; `sourdine reproduce all --quick` takes a few minutes. Every table is
here as CSV with all its digits. Seconds are by the clock, and the machine had other work for most of the run.
"""


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    held = {each.title: read(each, Path(sys.argv[1])) for each in find_experiments().values()}
    results = [each for each in held.values() if each is not None]
    missing = [title for title, each in held.items() if each is None]
    CHAPTER.mkdir(exist_ok=True)
    for old in CHAPTER.iterdir():
        old.unlink()
    page = whole(results)
    lines = [f"# {page.title}", "", page.lead, _HOW, *_tables("all", page.sections[0])]
    lines += [f"Not in this run: {', '.join(missing)}.", ""] if missing else []
    for result in results:
        lines += _experiment(result)
    (CHAPTER / "README.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _experiment(result: Result) -> list[str]:
    """One experiment: what was found, its tables and its figures."""
    lines, number = [f"## {result.title}", "", result.lead, ""], 0
    for section in result.told():
        lines += [f"### {section.title}", "", *(line for each in section.paragraphs for line in (each, ""))]
        lines += [*(f"- {each}" for each in section.points), ""] if section.points else []
        lines += _tables(result.name, section)
        for figure in section.figures:
            number += 1
            name = f"{result.name}_{number}.png"
            (CHAPTER / name).write_bytes(picture(figure, scale=_SCALE))
            lines += [f"![{figure.title}]({name})", "", *([figure.note, ""] if figure.note else [])]
    return lines


def _tables(name: str, section: Section) -> list[str]:
    """The tables of a section, each with a CSV beside it."""
    lines = []
    for table in section.tables:
        file = f"{name}_{table.name}.csv"
        (CHAPTER / file).write_text(table.csv(), encoding="utf-8")
        lines += [f"**{table.title}** ([CSV]({file}))", "", *_rows(table), ""]
        lines += [table.note, ""] if table.note else []
    return lines


def _rows(table: TextTable) -> list[str]:
    """A table as Markdown, or its first rows."""
    shown = table.shown()
    lines = [_row(table.columns), _row("---" for _ in table.columns), *map(_row, shown[:_MOST])]
    return lines + ([f"\n… and {len(shown) - _MOST} more rows."] if len(shown) > _MOST else [])


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    main()
