"""What can be done to a specification from the page, each as changes of its file."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.text import parse_toml
from sourdine.frames.expressions.tree import decimal
from sourdine.studio.desk import Desk, Sheet, check_again, payments_for
from sourdine.studio.draft import Edit, place_of
from sourdine.studio.publish import begin_release, begin_synthesis, make_ledger
from sourdine.studio.review import FIELDS, TYPES, read_number, read_value, suggest
from sourdine.studio.steps import (
    AskView,
    ask_view,
    count_exactly,
    count_privately,
    epsilon_at,
    extras_of,
    listed,
    where_rows,
)
from sourdine.tables.bounds import BoundsPlan, load_draft, open_column, release_bounds
from sourdine.tables.statistics import BY_KIND

Asked = Mapping[str, Any]
_BLOCKS = ("table", "privacy", "columns", "queries", "synthetic")
_NAMED = ("columns", "joins", "hierarchies")  # blocks of blocks with names
_FIXED = (("table", "source"), ("table", "checked"))  # set by choosing a table, and by a check


def act_on(desk: Desk, name: str, asked: Asked) -> Sheet:
    """Carry out what the page asks for, on the version that it has seen."""
    name_of_act = str(asked.get("act"))
    if (deed := DEEDS.get(name_of_act)) is not None:
        return desk.carry_out(name, str(asked.get("version")), lambda sheet: deed(desk, sheet, asked))
    act = ACTS.get(name_of_act)
    if act is None:
        raise InvalidParameter("The page asked for something unknown. Reload it.")
    version, paid = str(asked.get("version")), act is _find_bounds
    return desk.change(name, version, lambda sheet: act(sheet, asked), paid=paid)


def _set(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """Set one field to what was typed."""
    at = place_of(str(asked.get("at", "")))
    if at[0] not in _BLOCKS or at in _FIXED or not 2 <= len(at) <= 5:
        raise InvalidParameter("The page asked for a field that it has not. Reload it.")
    block = sheet.at(at[:-1])
    held = block if isinstance(block, Mapping) else {}
    content = read_value(str(at[-1]), asked.get("value", ""), held)
    if at == ("privacy", "ledger") and isinstance(content, str):
        check_ledger_name(sheet, content)
    if held.get(str(at[-1])) == content and type(held.get(str(at[-1]))) is type(content):
        return []
    return [Edit(at, content), *_with(at, content, held)]


def check_ledger_name(sheet: Sheet, name: str) -> None:
    """Refuse a ledger that the page may not name: beside the specification, or allowed from the start."""
    base = sheet.file.path.parent
    if name in sheet.folder.elsewhere:
        return
    if "/" in name or "\\" in name or not name.endswith(".ledger") or name.startswith("."):
        raise InvalidParameter(
            f"The ledger must be a file beside {base.name or 'the specification'}, such as people.ledger. "
            "Another place is named in the specification itself."
        )


def _with(at: tuple[str | int, ...], content: object, privacy: Mapping[str, Any]) -> list[Edit]:
    """What changes along: only units that a column tells apart have contribution bounds."""
    if at != ("privacy", "column"):
        return []
    bounds = ("max_rows", "max_groups")
    if content is None:
        return [Edit(("privacy", name), None) for name in bounds if name in privacy]
    return [Edit(("privacy", name), 1) for name in bounds if name not in privacy]


def _declare(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """Declare a column to be of a type, or leave it out."""
    name, kind = str(asked.get("column", "")), str(asked.get("value", ""))
    held = sheet.file.blocks.get("columns", {}).get(name)
    if held is None and name not in sheet.header.types:
        raise InvalidParameter(f"The table has no column '{name}'.")
    if kind not in TYPES:
        return [] if held is None else [Edit(("columns", name), None)]
    kept = held if isinstance(held, Mapping) else {}
    block = {"type": kind, **{each: kept.get(each, blank) for each, blank in FIELDS[kind].items()}}
    return [Edit(("columns", name), block)]


def _suggested(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """Take what is suggested for one column, or for all that still wait."""
    wanted = asked.get("column")
    edits = []
    declared = sheet.file.blocks.get("columns", {})
    for name, stated in sheet.header.types.items():
        suggestion = suggest(name, stated)
        if suggestion is None or (wanted is not None and name != wanted):
            continue
        if wanted is None and not _waits(declared.get(name)):
            continue
        if suggestion.block is not None or name in declared:
            edits.append(Edit(("columns", name), suggestion.block))
    return edits


def _waits(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") not in TYPES


def _write_block(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """A question, a column, a join or a hierarchy as text: all that a specification can say, in its words."""
    kind, name = str(asked.get("kind", "")), str(asked.get("name", "")).strip()
    text = str(asked.get("value", "")).strip()
    place: str | int = name
    if kind == "queries" and name.isdecimal() and int(name) < len(sheet.file.blocks.get("queries", [])):
        place = int(name)
    elif kind not in _NAMED or not name:
        raise InvalidParameter("Give it a name first: the name is what questions call it by.")
    if not text and kind in _NAMED:
        return [Edit((kind, name), None)] if sheet.at((kind, name)) is not None else []
    block, held = parse_toml(text, Path("text")), sheet.at((kind, place))
    if not block:
        raise InvalidParameter('Write at least one line, such as ask = ["count"].')
    if kind == "queries" and isinstance(held, Mapping):  # they have fields of their own
        block = {**{name: held[name] for name in ("name", "weight") if name in held}, **block}
    return [] if block == held else [Edit((kind, place), block)]


def _drop_blank(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """Leave out every column of which nobody said what it holds."""
    declared = sheet.file.blocks.get("columns", {})
    return [Edit(("columns", name), None) for name, block in declared.items() if _waits(block)]


def _aim(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """The least epsilon that brings the error of a question within a target."""
    from sourdine.tables.forecast import epsilon_for

    specification = sheet.review.specification
    if specification is None:
        raise InvalidParameter("Fill in the steps before this one first.")
    error = read_value("epsilon", asked.get("error", ""))
    if isinstance(error, str) or not isinstance(error, int | float):
        raise InvalidParameter("The error that is wanted must be a number, such as 50.")
    query, _, statistic = str(asked.get("target", "")).partition("\n")
    plan = epsilon_for(specification.plan(), query, error, statistic or None)
    return [Edit(("privacy", "epsilon"), float(plan.privacy.epsilon))]


def _slide(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """The epsilon at a place of the slider."""
    position = read_number(str(asked.get("value", "")))
    if isinstance(position, str):
        raise InvalidParameter("The slider has no such place. Reload the page.")
    return [Edit(("privacy", "epsilon"), epsilon_at(position))]


def _find_bounds(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """Pay for the bounds of a column, and declare what was found; what was found is not paid for again."""
    name = str(asked.get("column", ""))
    block = sheet.at(("columns", name)) or {}
    kind = str(block.get("type"))
    if kind not in ("integer", "real"):
        raise InvalidParameter("Only numbers have bounds. Say first that the column holds numbers.")
    if block.get("found"):  # a second click has the version that the first one left
        raise InvalidParameter("The bounds of this column were found already. Nothing was paid again.")
    for wrong in (sheet.review.at("/table/source"), sheet.review.at("/privacy/ledger")):
        if wrong is not None:
            raise InvalidParameter(f"{wrong.words} Nothing was paid.")
    sheet.file.check_writable()
    specification, _ = load_draft(sheet.file.path)
    sheet.check_reach(specification)
    search = BoundsPlan(
        column=name,
        epsilon=_epsilon(asked),
        kind="integer" if kind == "integer" else "real",
        unit=specification.unit,
        neighbours=Neighbours(specification.privacy.neighbours),
        confidence=specification.privacy.confidence,
        caveats=specification.table.text.caveats,
    )
    search.check_size(specification.table.size, "")
    source = open_column(specification.places, search, specification.table.text)
    with specification.open_ledger() as ledger:
        check_again(payments_for(ledger, search.purpose), asked.get("again"), f"bounds of {name}")
        bounds = release_bounds(search, source, ledger)
    return [Edit(("columns", name), dict(bounds.declared))]


# Questions that are added, changed, weighed, doubled and removed, as changes of the specification.


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
        items[place] = _with_part(view, part, typed, sheet)
    return [Edit(("queries", _place(asked), "ask"), items)]


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


ACTS: dict[str, Callable[[Sheet, Asked], Sequence[Edit]]] = {
    "set": _set,
    "declare": _declare,
    "suggested": _suggested,
    "drop-blank": _drop_blank,
    "block": _write_block,
    "add-question": add_question,
    "add-sql": add_sql,
    "copy-question": copy_question,
    "remove-question": remove_question,
    "ask": change_ask,
    "by": change_by,
    "where": change_where,
    "aim": _aim,
    "slide": _slide,
    "find-bounds": _find_bounds,
}


def _count_exactly(desk: Desk, sheet: Sheet, asked: Asked) -> None:
    count_exactly(desk, sheet)


def _hide_exact(desk: Desk, sheet: Sheet, asked: Asked) -> None:
    desk.exact.pop(sheet.name, None)


def _make_ledger(desk: Desk, sheet: Sheet, asked: Asked) -> None:
    make_ledger(sheet, str(asked.get("value", "")))


def _release(desk: Desk, sheet: Sheet, asked: Asked) -> None:
    version, into = str(asked.get("version")), str(asked.get("into", ""))
    begin_release(desk, sheet, into, version, sure=asked.get("sure") == "yes", again=asked.get("again"))


def _synthesize(desk: Desk, sheet: Sheet, asked: Asked) -> None:
    version, into = str(asked.get("version")), str(asked.get("into", ""))
    begin_synthesis(desk, sheet, into, version, sure=asked.get("sure") == "yes", again=asked.get("again"))


def _count_privately(desk: Desk, sheet: Sheet, asked: Asked) -> None:
    count_privately(desk, sheet, _epsilon(asked), again=asked.get("again"))


def _epsilon(asked: Asked) -> Fraction:
    number = read_number(str(asked.get("value", "")).strip())
    if isinstance(number, str) or not 0 < number <= 1 << 10:
        raise InvalidParameter("The epsilon to pay must be a number above 0, such as 0.1. Nothing was paid.")
    return decimal(number)


DEEDS: dict[str, Callable[[Desk, Sheet, Asked], None]] = {  # what changes more than the specification
    "count-privately": _count_privately,
    "exact": _count_exactly,
    "hide-exact": _hide_exact,
    "make-ledger": _make_ledger,
    "release": _release,
    "synthesize": _synthesize,
}


def _with_part(view: AskView, part: str, typed: Any, sheet: Sheet) -> object:
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


def _truth(key: object) -> object:
    return {"true": True, "false": False}.get(str(key), key)


def _moment(typed: str) -> object:
    from sourdine.studio.review import read_moment

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
