"""The same as code: what the page says, as a specification, in Python, in SQL and as commands."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from shlex import quote
from typing import Any

from sourdine.core.errors import SourdineError
from sourdine.core.format import in_files, value
from sourdine.core.text import toml_key
from sourdine.frames.csv.format import TextFormat
from sourdine.studio.desk import Sheet
from sourdine.studio.draft import field_lines
from sourdine.studio.steps import listed, sql_name, where_rows

_BLOCKS = {
    "table": ("table", "series"),
    "people": ("privacy",),
    "columns": ("columns", "joins", "hierarchies"),
    "questions": ("queries",),
    "synthetic": ("synthetic",),
}
_TEXT = tuple(TextFormat.model_fields)
_SQL = {"count": "COUNT(*)", "sum": "SUM", "mean": "AVG", "variance": "VAR_POP", "deviation": "STDDEV_POP"}


def code_of(step: str, sheet: Sheet) -> list[tuple[str, str]]:
    """What a step says, each form with its name."""
    blocks = sheet.file.blocks
    forms = [
        ("TOML", _toml(step, blocks)),
        ("Python", _python(step, sheet)),
        ("Command", _command(step, sheet)),
    ]
    if step == "questions":
        forms.insert(2, ("SQL", "\n\n".join(_sql(each, sheet) for each in listed(blocks.get("queries")))))
    return [(name, text) for name, text in forms if text]


def _toml(step: str, blocks: Mapping[str, Any]) -> str:
    lines: list[str] = []
    with in_files():
        for name in _BLOCKS.get(step, ("privacy",)):
            held = blocks.get(name, {})
            if not held and name != "synthetic":
                continue
            if name == "queries":
                for each in listed(held):
                    lines += ["[[queries]]", *field_lines(each), ""]
            elif name in ("columns", "joins", "hierarchies"):
                for each, fields in held.items():
                    lines += [f"[{name}.{toml_key(each)}]", *field_lines(fields), ""]
            else:
                lines += [f"[{name}]", *field_lines(held), ""]
    return "\n".join(lines).strip()


def _python(step: str, sheet: Sheet) -> str:
    """The same with the library, from the import to the step."""
    blocks = sheet.file.blocks
    if "hierarchies" in blocks or "series" in blocks:  # which a table has no words for
        name = value(PurePosixPath(sheet.name).name)
        call = "series_plan" if "series" in blocks else "synthetic_plan" if step == "synthetic" else "plan"
        load = f"specification = sd.Specification.load({name})"
        return f"import sourdine as sd\n\n{load}\nplan = specification.{call}()"
    table, privacy = blocks.get("table", {}), blocks.get("privacy", {})
    column = privacy.get("column")
    unit = value(privacy.get("unit", "person"))
    if column:
        bounds = "".join(
            f", {name}={privacy[name]}" for name in ("max_rows", "max_groups") if name in privacy
        )
        unit = f"sd.PrivacyUnit({unit}, column={value(column)}{bounds})"
    columns = "".join(
        f"        {value(name)}: {_literal(block)},\n" for name, block in blocks.get("columns", {}).items()
    )
    text = {name: table[name] for name in _TEXT if name in table}
    lines = [
        "import sourdine as sd",
        "",
        "table = sd.Table(",
        f"    {_literal(table.get('source', ''))},",
        f"    unit={unit},",
        f"    columns={{\n{columns}    }},",
        *([f"    size={table['size']},"] if "size" in table else []),
        *([f"    text={_literal(text)},"] if text else []),
        *([f"    joins={_literal(blocks['joins'])},"] if blocks.get("joins") else []),
        *(["    checked=True,"] if table.get("checked") is True else []),
        f"    neighbours={value(privacy.get('neighbours', 'add-remove'))},",
        ")",
    ]
    if step in ("table", "people", "columns"):
        return "\n".join(lines)
    if step == "synthetic":
        return "\n".join([*lines, *_synthesis(blocks, privacy)])
    queries = "".join(f"    {_literal(each)},\n" for each in listed(blocks.get("queries")))
    delta = "".join(
        f"    {name}={privacy[name]!r},\n" for name in ("delta", "selection_delta") if name in privacy
    )
    if (specification := sheet.review.specification) is not None and specification.noise is not None:
        delta += f"    noise={value(str(specification.noise))},\n"
    lines.append(f"plan = table.plan(\n{queries}    epsilon={privacy.get('epsilon')!r},\n{delta})")
    if step in ("budget", "check"):
        lines.append("plan.forecast()")
    if step == "check":
        lines.append("table.check()  # exact, and not private")
    if step in ("release", "result"):
        lines += [
            f"release = table.release(plan, {value(privacy.get('ledger') or 'people.ledger')})",
            "print(release)",
        ]
    return "\n".join(lines)


def _synthesis(blocks: Mapping[str, Any], privacy: Mapping[str, Any]) -> list[str]:
    declared = {
        **{name: privacy[name] for name in ("epsilon", "delta", "selection_delta") if name in privacy},
        "ledger": privacy.get("ledger") or "people.ledger",
        **blocks.get("synthetic", {}),
    }
    fields = "".join(f"    {name}={_literal(each)},\n" for name, each in declared.items())
    return [f"release = table.synthesize(\n{fields})", 'release.values.write("synthetic.csv")']


def _literal(content: Any) -> str:
    """A value in Python; days and times as text, which declarations read as well."""
    if isinstance(content, Mapping):
        return "{" + ", ".join(f"{value(name)}: {_literal(each)}" for name, each in content.items()) + "}"
    if isinstance(content, list):
        return "[" + ", ".join(map(_literal, content)) + "]"
    if isinstance(content, bool | int | float):
        return repr(content)
    return value(str(content))


def _command(step: str, sheet: Sheet) -> str:
    name = quote(PurePosixPath(sheet.name).name)
    privacy = sheet.file.blocks.get("privacy", {})
    ledger = quote(str(privacy.get("ledger") or "people.ledger"))
    folder = quote(f"{PurePosixPath(sheet.stem).name}-release")
    source = sheet.file.blocks.get("table", {}).get("source", "table.csv")
    return {
        "table": f"sourdine init {quote(str(source))} -o {name}",
        "people": f"sourdine studio {name}",
        "columns": f"sourdine bounds {name} --column COLUMN --epsilon 0.1",
        "questions": f"sourdine plan {name}",
        "budget": f"sourdine plan {name} --error 'QUESTION=ERROR'\n"
        f"sourdine budget explain {privacy.get('epsilon')}",
        "check": f"sourdine plan {name} --dry-run\nsourdine check {name}  # exact, and not private",
        "release": f"sourdine ledger create {ledger} --epsilon 3 --unit {quote(str(privacy.get('unit')))}\n"
        f"sourdine release {name} -o {folder}",
        "result": f"sourdine certificate verify {folder} --ledger {ledger}",
        "synthetic": f"sourdine synthesize {name} --plan\n"
        f"sourdine synthesize {name} -o {quote(PurePosixPath(sheet.stem).name + '-synthetic')}",
    }[step]


def _sql(block: Any, sheet: Sheet) -> str:
    """A question in SQL, if it has words for it; they are read back, so that they ask the same."""
    if not isinstance(block, Mapping):
        return ""
    name = f"-- {block.get('name')}\n".replace("\r", " ")
    if "sql" in block:
        return f"{name}{block['sql']}"
    text = _select(block, sheet)
    return f"{name}{text or '-- SQL has no words for this question'}"


def _select(block: Mapping[str, Any], sheet: Sheet) -> str:
    rows = where_rows(block.get("where", {}))
    by = listed(block.get("by"))
    if rows is None or not set(block) <= {"name", "ask", "by", "where", "weight"}:
        return ""
    asked = [_aggregate(each, sheet) for each in listed(block.get("ask"))]
    if not all(asked) or not all(isinstance(each, str) for each in by):
        return ""
    keys = [sql_name(each) for each in by]
    conditions = [_condition(*row, sheet) for row in rows]
    where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    group = f"\nGROUP BY {', '.join(keys)}" if keys else ""
    text = (
        " ".join(["SELECT", ", ".join([*keys, *asked]), "FROM", sql_name(PurePosixPath(sheet.stem).name)])
        + where
        + group
    )
    return text if _asks_the_same(text, block, sheet) else ""


def _asks_the_same(text: str, block: Mapping[str, Any], sheet: Sheet) -> bool:
    from sourdine.tables.query import Query
    from sourdine.tables.sql import SqlTable, read_sql

    if sheet.review.schema is None or sheet.review.unit is None:
        return False
    try:
        table = SqlTable(schema=sheet.review.schema, unit=sheet.review.unit, joins=())
        made = read_sql(text, table, str(block.get("name"))).query
        asked = Query.read({name: each for name, each in block.items() if name != "weight"})
    except SourdineError:
        return False
    return (made.ask, made.by) == (asked.ask, asked.by) and len(made.where) == len(asked.where)


def _aggregate(item: Any, sheet: Sheet) -> str:
    if item == "count":
        return "COUNT(*)"
    if item == "units" and sheet.review.unit is not None and sheet.review.unit.column:
        return f"COUNT(DISTINCT {sql_name(sheet.review.unit.column)})"
    if isinstance(item, Mapping) and len(item) == 1:
        kind, column = next(iter(item.items()))
        if kind in _SQL and isinstance(column, str):
            return f"{_SQL[kind]}({sql_name(column)})"
    return ""


def _condition(name: str, word: str, held: str, sheet: Sheet) -> str:
    if word == "of":
        return f"{sql_name(name)} IN ({', '.join(_constant(each.strip()) for each in held.split(','))})"
    return f"{sql_name(name)} {'>=' if word == 'at_least' else '<'} {_constant(held)}"


def _constant(text: str) -> str:
    plain = text.replace(".", "", 1).removeprefix("-").isdecimal() or text in ("true", "false")
    return text if plain else "'" + text.replace("'", "''") + "'"
