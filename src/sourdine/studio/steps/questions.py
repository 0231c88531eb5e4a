"""The fourth step: what is asked, of which records, by which groups, and with how much of the budget."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sourdine.studio.desk import Desk, Sheet
from sourdine.studio.draft_file import block_text
from sourdine.studio.values import shown
from sourdine.tables.statistics import BY_KIND

KINDS = {
    "count": "how many records",
    "units": "how many units",
    "sum": "sum",
    "mean": "mean",
    "variance": "variance",
    "deviation": "standard deviation",
    "proportion": "share of records with",
    "quantiles": "quantiles",
    "histogram": "histogram",
    "contingency": "crosstab of",
    "top": "most frequent keys",
    "weighted_mean": "weighted mean",
    "weighted_sum": "weighted sum",
    "covariance": "covariance",
    "correlation": "correlation",
    "regression": "regression line",
}
LABELS = {
    "levels": "shares below, such as 0.25, 0.5",
    "edges": "edges of the bins, such as 0, 20, 40",
    "at_least": "at least",
    "below": "below",
    "of": "keys, separated by commas",
    "k": "how many keys",
    "other": "with the column",
    "on": "on the column",
    "weight": "weighted by the column",
}
EXTRAS = {"proportion": ("at_least", "below", "of")}  # others are as the example of the statistic has them
COLUMNS = ("other", "on", "weight")  # fields that name a column
_NUMBERS, _KEYS = ("integer", "real"), ("category", "flag", "text", "date", "datetime", "integer")
_OF_KEYS = ("contingency", "top")
_CONDITIONS = {
    "integer": ("at_least", "below"),
    "real": ("at_least", "below"),
    "category": ("of",),
    "flag": (),
}


@dataclass(frozen=True)
class AskView:
    """One statistic of a question, as the page shows it."""

    kind: str
    column: object
    extras: Mapping[str, object]

    @property
    def several(self) -> bool:
        """Whether it is about two columns of keys."""
        return self.kind == "contingency"

    @property
    def bare(self) -> bool:
        """Whether it is about no column."""
        return self.kind in BY_KIND and BY_KIND[self.kind].bare

    @property
    def columns(self) -> list[str]:
        """The columns that it is about."""
        held = self.column if isinstance(self.column, list) else [self.column]
        return [str(each) for each in held if each]


@dataclass(frozen=True)
class QuestionView:
    """One question, as the page shows it; `text` if it is asked in SQL."""

    place: int
    name: str
    asks: tuple[AskView, ...]
    by: tuple[str, ...]
    where: tuple[tuple[str, str, str], ...]
    weight: str
    sql: str | None
    plain: bool  # whether the page can show all of it
    text: str  # as the specification has it


def questions_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """Every question, and what can be asked of which column."""
    queries = sheet.file.blocks.get("queries", [])
    schema = sheet.review.schema
    columns = schema.columns if schema else {}
    types = {name: str(getattr(column, "type", "")) for name, column in columns.items()}
    return {
        "questions": [_view(place, block) for place, block in enumerate(queries)],
        "kinds": KINDS,
        "labels": LABELS,
        "column_fields": COLUMNS,
        "numbers": [name for name, kind in types.items() if kind in _NUMBERS],
        "keys": [name for name, kind in types.items() if kind in _KEYS],
        "names": list(types),
        "of_keys": _OF_KEYS,
        "proportions": {name: _CONDITIONS.get(kind, EXTRAS["proportion"]) for name, kind in types.items()},
        "unit": sheet.file.blocks.get("privacy", {}).get("unit", "person"),
        "waiting": bool(sheet.review.of("columns")),
        "example": _example(sheet.stem.rsplit("/", 1)[-1], types),
    }


def _example(table: str, types: Mapping[str, str]) -> str:
    """A question in SQL about columns that are declared, if there are such."""
    number = next((sql_name(name) for name, kind in types.items() if kind in _NUMBERS), None)
    key = next((sql_name(name) for name, kind in types.items() if kind in ("category", "flag")), None)
    asked = [*([key] if key else []), "COUNT(*)", *([f"AVG({number})"] if number else [])]
    groups = ["GROUP BY", key] if key else []
    return " ".join(["SELECT", ", ".join(asked), "FROM", sql_name(table), *groups])


def sql_name(name: str) -> str:
    """A name as SQL takes it."""
    plain = name.isascii() and name.replace("_", "").isalnum() and not name[0].isdecimal()
    return name if plain else '"' + name.replace('"', '""') + '"'


def _view(place: int, block: Any) -> QuestionView:
    if not isinstance(block, Mapping):
        return QuestionView(place, "", (), (), (), "", None, False, "")
    asks = [ask_view(each) for each in listed(block.get("ask"))]
    by = listed(block.get("by"))
    where = where_rows(block.get("where", {}))
    known = {"name", "ask", "by", "where", "weight", "sql"}
    plain = (
        set(block) <= known
        and None not in asks
        and where is not None
        and all(isinstance(each, str) for each in by)
    )
    return QuestionView(
        place=place,
        name=shown(block.get("name")),
        asks=tuple(each for each in asks if each is not None),
        by=tuple(map(str, by)),
        where=tuple(where or ()),
        weight=shown(block.get("weight", 1)),
        sql=str(block["sql"]) if "sql" in block else None,
        plain=plain,
        text=block_text({name: each for name, each in block.items() if name not in ("name", "weight")}),
    )


def listed(content: Any) -> list[Any]:
    """A list, also where one thing stands alone."""
    return [] if content is None else list(content) if isinstance(content, list) else [content]


def ask_view(item: Any) -> AskView | None:
    """A statistic as the page shows it, None if it cannot."""
    if isinstance(item, str):
        return AskView(item, "", {}) if item in KINDS else None
    if not isinstance(item, Mapping) or not item or "kind" in item:
        return None
    kind, column = next(iter(item.items()))
    rest = {name: content for name, content in item.items() if name != kind}
    if kind not in KINDS or not set(rest) <= set(extras_of(kind)) or isinstance(column, Mapping):
        return None
    return AskView(kind, column, {name: rest.get(name) for name in extras_of(kind)})


def extras_of(kind: str) -> tuple[str, ...]:
    """The fields that a statistic has beside its column."""
    return EXTRAS.get(kind, tuple(BY_KIND[kind].example)[1:] if kind in BY_KIND else ())


def where_rows(where: Any) -> list[tuple[str, str, str]] | None:
    """Conditions as column, word and value; None if the page cannot show them."""
    if not isinstance(where, Mapping):
        return None
    rows: list[tuple[str, str, str]] = []
    for name, condition in where.items():
        if isinstance(condition, list):
            rows.append((name, "of", ", ".join(map(shown, condition))))
        elif isinstance(condition, bool):
            rows.append((name, "of", shown(condition)))
        elif isinstance(condition, Mapping) and set(condition) <= {"at_least", "below"}:
            rows.extend((name, word, shown(each)) for word, each in condition.items())
        else:
            return None
    return rows
