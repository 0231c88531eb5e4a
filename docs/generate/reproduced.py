"""The chapter of reproduced experiments, from what `sourdine reproduce all` left in a folder.

`make reproduce` runs both; `python docs/generate/reproduced.py FOLDER` writes the chapter alone. The summary
and `verdicts.csv` are kept with the source; every other page, table and picture is made for the site.
Verdicts of an experiment that is not in the folder stay as they are.
"""

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from sourdine.core.display import picture
from sourdine.report.view import Section, TextTable
from sourdine_reproduction import find_experiments
from sourdine_reproduction.cache import read
from sourdine_reproduction.pages import ONCE, TITLE, by_source, count_words, meanings, source_page, standings
from sourdine_reproduction.registry import ANSWERED, ClaimVerdict, Result
from sourdine_reproduction.statements import SOURCES, STATEMENTS, Standing

CHAPTER = Path(__file__).parents[1] / "reproduced"
BEFORE = Path(__file__).with_name("verdicts_before.csv")
_VERDICTS = "verdicts.csv"
_SCALE = 1.25  # of the pictures, small enough to be kept with the source
_MOST = 13  # rows of a table that is shown whole
_FIRST = 8  # rows of a longer one that are shown; the rest is in its CSV
_WORDS = 30  # rows of a table of sentences that is shown whole
_COLUMNS = ("experiment", "statement", "source", "place", "sentence", "published", "ours", "verdict", "why")
_HOW = """## How it is made

By `make reproduce DATA=FOLDER`, which is

```text
sourdine reproduce all --data FOLDER -o reproduced
python docs/generate/reproduced.py reproduced
```

where FOLDER has the public data that some experiments need (MNIST, Pima); each says what it goes without. It
takes most of an hour on two idle cores; `sourdine reproduce all --quick` takes a few minutes. It writes a
page for each source and each experiment beside this one, with every table as CSV; they are published with
the site.
"""

Kept = dict[str, list[ClaimVerdict]]  # the verdicts of each experiment


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    CHAPTER.mkdir(exist_ok=True)
    kept, titles = _kept(), {}
    for name, experiment in find_experiments().items():
        result = read(experiment, Path(sys.argv[1]))
        if result is not None:
            kept[name] = [
                replace(each, statement=STATEMENTS[each.statement.name]) for each in result.verdicts
            ]
            _experiment(result)
        titles[name] = _title(CHAPTER / f"{name}.md")
    verdicts = [each for name in titles for each in kept.get(name, [])]
    _keep(kept)
    for source, some in by_source(verdicts).items():
        page = source_page(source, some)
        lines = [f"# {page.title}", "", page.lead, ""]
        for section in page.sections:
            lines += [f"## {_escaped(section.title)}", ""]
            lines += [line for each in section.paragraphs for line in (_escaped(each), "")]
        _write(f"{source.name}.md", lines)
    _changes(verdicts)
    _summary(verdicts)
    _contents(titles)


def _summary(verdicts: Sequence[ClaimVerdict]) -> None:
    """Write the first page: how many statements have each verdict, and what the verdicts mean.

    It links to no page that only the site has.
    """
    lines = [f"# {TITLE}", "", count_words(verdicts), "", "## How the statements stand", "", ONCE, ""]
    for table in (standings(verdicts), meanings()):
        lines += [f"**{table.title}**", "", *_rows(table, len(table.rows)), ""]
    lines += [f"All of them in one table: [CSV]({_VERDICTS}).", "", "## Sources", ""]
    lines += [f"- {source.title}: {source.document}" for source in SOURCES]
    _write("README.md", [*lines, "", _HOW])


def _contents(titles: dict[str, str]) -> None:
    """Write the page that leads to all others."""
    lines = ["# All statements and experiments", "", "[How the statements stand](README.md).", ""]
    lines += ["What changed since the first judgement, and why: [Before and after](changes.md).", ""]
    lines += ["## Statement by statement", ""]
    lines += [f"- [{source.title}]({source.name}.md): {source.document}" for source in SOURCES]
    lines += ["", "## Experiments, with their tables and figures", ""]
    ordered = sorted(titles.items(), key=lambda each: each[0] == "errors")
    lines += [f"- [{title}]({name}.md)" for name, title in ordered if title]
    _write("contents.md", lines)


def _experiment(result: Result) -> None:
    """One experiment: what was found, its tables and its figures."""
    for old in CHAPTER.glob(f"{result.name}_*"):
        if old.suffix in (".csv", ".png"):
            old.unlink()
    lines, number = [f"# {result.title}", "", result.lead, "", *_sources(result.verdicts)], 0
    for section in result.sections:
        lines += [f"## {section.title}", "", *(line for each in section.paragraphs for line in (each, ""))]
        lines += [*(f"- {each}" for each in section.points), ""] if section.points else []
        lines += _tables(result.name, section)
        for figure in section.figures:
            number += 1
            name = f"{result.name}_{number}.png"
            (CHAPTER / name).write_bytes(picture(figure, scale=_SCALE))
            lines += [f"![{figure.title}]({name})", "", *([figure.note, ""] if figure.note else [])]
    _write(f"{result.name}.md", lines)


def _sources(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """Where the statements stand that an experiment judges."""
    links = [f"[{source.title}]({source.name}.md)" for source in by_source(verdicts)]
    return [f"Statements and verdicts: {', '.join(links)}.", ""] if links else []


def _changes(verdicts: Sequence[ClaimVerdict]) -> None:
    """Every verdict of the first judgement beside the one of today, with the reason."""
    now = {each.statement.name: each for each in verdicts}
    with BEFORE.open(encoding="utf-8", newline="") as file:
        before = list(csv.DictReader(file))
    rows = []
    for row in before:
        names = row["statement"].split()
        after = "; ".join(dict.fromkeys(now[name].word for name in names)) if names else "not counted"
        rows.append((row["claim"], row["before"], after, row["reason"]))
    known = {name for row in before for name in row["statement"].split()}
    rows += [
        (each.statement.claim, "–", each.word, "New: the first judgement had left it out.")
        for name, each in now.items()
        if name not in known
    ]
    table = TextTable(
        name="changes",
        title="Every verdict, before and after",
        columns=("statement", "before", "after", "why it changed"),
        rows=tuple(rows),
    )
    counts = [Counter(row["before"] for row in before), Counter(each.word for each in verdicts)]
    words = dict.fromkeys([*map(str, Standing), *counts[0], ANSWERED])
    summary = TextTable(
        name="changes_counts",
        title="How many",
        columns=("verdict", "before", "after"),
        rows=tuple((word, counts[0][word], counts[1][word]) for word in words),
        note="Before, understated and overstated were verdicts of their own, and 14 statements were counted "
        "twice.",
    )
    lines = ["# Verdicts, before and after", "", _WHY_CHANGED, ""]
    changed = TextTable(
        name="changes",
        title=table.title,
        columns=table.columns,
        rows=tuple(row for row in table.rows if row[3]),
        note=f"{sum(not row[3] for row in table.rows)} more stand as they stood; the CSV has them too.",
    )
    lines += _tables("all", Section(title="", tables=(summary,)))
    (CHAPTER / "all_changes.csv").write_text(table.csv(), encoding="utf-8")
    lines += [
        f"**{changed.title}** ([CSV](all_changes.csv))",
        "",
        *_rows(changed, len(changed.rows)),
        "",
        changed.note,
    ]
    _write("changes.md", lines)


_WHY_CHANGED = (
    "The statements were judged a second time, sentence by sentence against the texts. Numbers that were "
    "called published and stand nowhere in print are no longer; what a source leaves open, or objects to "
    "itself, is not held against it; what was tried on other data than the source's is not tested."
)


def _kept() -> Kept:
    """The verdicts that the chapter has."""
    found: Kept = {}
    if (CHAPTER / _VERDICTS).exists():
        with (CHAPTER / _VERDICTS).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                standing = None if row["verdict"] == ANSWERED else Standing(row["verdict"])
                verdict = ClaimVerdict(
                    statement=STATEMENTS[row["statement"]],
                    finding=row["ours"],
                    standing=standing,
                    why=row["why"],
                )
                found.setdefault(row["experiment"], []).append(verdict)
    return found


def _keep(kept: Kept) -> None:
    rows = [
        (
            name,
            each.statement.name,
            each.statement.source.title,
            each.statement.place,
            each.statement.sentence,
            each.statement.published,
            each.finding,
            each.word,
            each.why,
        )
        for name, some in sorted(kept.items())
        for each in some
    ]
    table = TextTable(name="verdicts", title="", columns=_COLUMNS, rows=tuple(rows))
    (CHAPTER / _VERDICTS).write_text(table.csv(), encoding="utf-8")


def _tables(name: str, section: Section) -> list[str]:
    """The tables of a section, each with a CSV beside it."""
    lines = []
    for table in section.tables:
        file = f"{name}_{table.name}.csv"
        (CHAPTER / file).write_text(table.csv(), encoding="utf-8")
        lines += [f"**{table.title}** ([CSV]({file}))", "", *_rows(table, _shown(table)), ""]
        lines += [table.note, ""] if table.note else []
    return lines


def _shown(table: TextTable) -> int:
    return _WORDS if table.wordy and len(table.rows) <= _WORDS else _MOST


def _rows(table: TextTable, most: int) -> list[str]:
    """A table as Markdown, or the first rows of one that has more."""
    shown = table.shown()
    first = shown[: _FIRST if len(shown) > most else most]
    lines = [_row(table.columns), _row("---" for _ in table.columns), *map(_row, first)]
    hidden = len(shown) - len(first)
    return lines + ([f"\n… and {hidden} more rows."] if hidden else [])


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _escaped(text: str) -> str:
    """Words that Markdown shall not take for its own."""
    return re.sub(r"([\\`*_\[\]#])", r"\\\1", text)


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") if page.exists() else ""


def _write(name: str, lines: Iterable[str]) -> None:
    (CHAPTER / name).write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
