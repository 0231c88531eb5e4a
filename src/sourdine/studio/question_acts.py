"""Questions that are added, changed, weighed, doubled and removed, as changes of the specification."""

from collections.abc import Mapping, Sequence
from typing import Any

from sourdine.core.errors import InvalidParameter
from sourdine.studio.desk import Sheet
from sourdine.studio.draft_file import Edit
from sourdine.studio.steps.questions import AskView, ask_view, extras_of, listed, where_rows
from sourdine.studio.values import read_number
from sourdine.tables.statistics import BY_KIND

Asked = Mapping[str, Any]


def add_question(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """A new question, which counts records until it asks something else."""
    name = _free_name(sheet, "question")
    return [Edit(("queries", len(_queries(sheet))), {"name": name, "ask": ["count"]})]


def add_sql(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """A new question in SQL."""
    text = str(asked.get("value", "")).strip()
    if not text:
        raise InvalidParameter("Write a question in SQL first, as the example in the field has it.")
    return [Edit(("queries", len(_queries(sheet))), {"name": _free_name(sheet, "sql"), "sql": text})]


def copy_question(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """The same question once more, under another name."""
    block = dict(_query(sheet, asked))
    block["name"] = _free_name(sheet, str(block.get("name", "question")))
    return [Edit(("queries", len(_queries(sheet))), block)]


def remove_question(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """One question less."""
    _query(sheet, asked)
    return [Edit(("queries", _place(asked)), None)]


def change_ask(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """Another statistic, or another column or number of one; one more, or one less."""
    block = _query(sheet, asked)
    items = listed(block.get("ask"))
    place, part, typed = int(asked.get("ask", len(items))), str(asked.get("part")), asked.get("value", "")
    if not 0 <= place <= len(items):
        raise InvalidParameter("The page asked for something that is not there. Reload it.")
    if part == "remove":
        items = [each for number, each in enumerate(items) if number != place]
    elif part == "add":
        items.append("units" if "count" in items else "count")
    else:
        view = ask_view(items[place]) or AskView("count", "", {})
        items[place] = _with(view, part, typed, sheet)
    return [Edit(("queries", _place(asked), "ask"), items)]


def _with(view: AskView, part: str, typed: Any, sheet: Sheet) -> object:
    """A statistic in which one part is another."""
    if part == "kind":
        kind = str(typed)
        if kind not in BY_KIND:
            raise InvalidParameter("There is no such statistic. Reload the page.")
        if BY_KIND[kind].bare:
            return kind
        column: object = view.columns if kind == "contingency" else (view.columns or [""])[0]
        example = BY_KIND[kind].example
        extras = {name: example[name] for name in extras_of(kind) if name in ("levels", "k")}
        return {kind: column or _first(sheet, kind), **extras}
    extras = {name: content for name, content in view.extras.items() if content is not None}
    if part == "column":
        return {view.kind: _names(typed) if view.several else str(typed), **extras}
    if part not in extras_of(view.kind):
        raise InvalidParameter("The page asked for a field that it has not. Reload it.")
    extras.pop(part, None)
    if (content := _extra(part, str(typed).strip())) is not None:
        extras[part] = content
    return {view.kind: view.column, **extras}


def _first(sheet: Sheet, kind: str) -> object:
    """A column to begin with, of a type that fits."""
    schema = sheet.review.schema
    of_keys = kind in ("contingency", "top")
    fits: Sequence[str] = ("category", "flag", "text", "date") if of_keys else ("integer", "real")
    types = {
        name: str(getattr(column, "type", "")) for name, column in (schema.columns.items() if schema else ())
    }
    if kind == "proportion" and "flag" in types.values():
        fits = ("flag",)  # the only type of which a share needs nothing more
    names = [name for name, held in types.items() if held in fits]
    return names[:2] if kind == "contingency" else names[0] if names else ""


def _extra(part: str, typed: str) -> object:
    if not typed:
        return None
    if part in ("levels", "edges"):
        return [read_number(each.strip()) for each in typed.split(",") if each.strip()]
    if part == "of":
        return [_key(each.strip()) for each in typed.split(",") if each.strip()]
    return typed if part in ("other", "on", "weight") else read_number(typed)


def _key(text: str) -> object:
    number = read_number(text)
    return number if isinstance(number, int) and str(number) == text else text


def change_by(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """By another column too, or by one less."""
    block, name = _query(sheet, asked), str(asked.get("column", ""))
    by = [each for each in listed(block.get("by")) if each != name]
    if asked.get("value"):
        by.append(name)
    return [Edit(("queries", _place(asked), "by"), by or None)]


def change_where(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """Another condition: `word` is at_least, below or of, for a column; an empty value takes it away."""
    block = _query(sheet, asked)
    where = block.get("where", {})
    if where_rows(where) is None:
        raise InvalidParameter("These conditions are changed in the specification itself.")
    name, word = str(asked.get("column", "")), str(asked.get("word", ""))
    typed = str(asked.get("value", "")).strip()
    changed = {each: dict(held) if isinstance(held, Mapping) else held for each, held in where.items()}
    if not typed or not name:
        held = changed.get(name)
        if isinstance(held, dict):
            held.pop(word, None)
        if not isinstance(held, dict) or not held:
            changed.pop(name, None)
    elif word == "of":
        changed[name] = [
            _truth(each) for each in (_key(part.strip()) for part in typed.split(",")) if each != ""
        ]
    else:
        held = changed.get(name)
        changed[name] = {**(held if isinstance(held, dict) else {}), word: _moment(typed)}
    return [Edit(("queries", _place(asked), "where"), changed or None)]


def _truth(key: object) -> object:
    return {"true": True, "false": False}.get(str(key), key)


def _moment(typed: str) -> object:
    from sourdine.studio.values import read_moment

    number = read_number(typed)
    return read_moment(typed) if isinstance(number, str) else number


def _names(typed: Any) -> list[str]:
    parts = typed if isinstance(typed, list) else str(typed).split(",")
    return [str(each).strip() for each in parts if str(each).strip()]


def _queries(sheet: Sheet) -> Sequence[Any]:
    queries = sheet.file.blocks.get("queries", [])
    return queries if isinstance(queries, list) else []


def _place(asked: Asked) -> int:
    return int(asked.get("query", -1))


def _query(sheet: Sheet, asked: Asked) -> Mapping[str, Any]:
    queries = _queries(sheet)
    place = _place(asked)
    if not 0 <= place < len(queries) or not isinstance(queries[place], Mapping):
        raise InvalidParameter("The page asked for a question that is not there. Reload it.")
    block: Mapping[str, Any] = queries[place]
    return block


def _free_name(sheet: Sheet, stem: str) -> str:
    taken = {each.get("name") for each in _queries(sheet) if isinstance(each, Mapping)}
    number = 2
    name = stem
    while name in taken:
        name, number = f"{stem} {number}", number + 1
    return name
