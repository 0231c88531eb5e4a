"""The first mistake of a declaration, in one sentence: which field, what is wrong, and what to write."""

import difflib

from pydantic import ValidationError

from sourdine.core.errors import InvalidParameter

_TYPES = ("integer", "real", "category", "flag", "text")
_PLAIN = {
    "tuple_type": "it must be a list",
    "string_type": "it must be a text in quotes",
    "int_type": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "float_type": "it must be a number",
    "bool_type": "it must be true or false",
    "mapping_type": "it must be a block of fields",
    "dict_type": "it must be a block of fields",
    "model_type": "it must be a block of fields",
    "model_attributes_type": "it must be a block of fields",
    "too_short": "it must hold at least {min_length}",
    "too_long": "it must hold at most {max_length}",
    "string_too_short": "it must not be empty",
    "string_too_long": "it must have at most {max_length} characters",
    "greater_than": "it must be above {gt}",
    "greater_than_equal": "it must be at least {ge}",
    "less_than": "it must be below {lt}",
    "less_than_equal": "it must be at most {le}",
    "union_tag_invalid": "its {discriminator} must be one of {expected_tags}",
    "union_tag_not_found": "its {discriminator} is missing",
}
_EXAMPLES = {
    "ask": 'ask = ["count", { mean = "pay" }]',
    "at_least": "at_least = 18",
    "below": "below = 65",
    "by": 'by = ["sex"]',
    "column": 'column = "person_id"',
    "columns": 'columns = ["region"]',
    "confidence": "confidence = 0.95",
    "decimal": 'decimal = ","',
    "delimiter": 'delimiter = ";"',
    "delta": "delta = 1e-6",
    "edges": "edges = [0, 20, 40]",
    "encoding": 'encoding = "utf-8"',
    "epsilon": "epsilon = 1.0",
    "file": 'file = "places.csv"',
    "granularity": "granularity = 0.01",
    "header": "header = false",
    "keys": 'keys = ["a", "b"]',
    "k": "k = 10",
    "ledger": 'ledger = "people.ledger"',
    "hierarchies.levels": 'levels = ["region", "town"]',
    "levels": "levels = [0.25, 0.5, 0.75]",
    "lower": "lower = 0",
    "max_groups": "max_groups = 3",
    "max_rows": "max_rows = 5",
    "method": 'method = "auto"',
    "missing": 'missing = "drop"',
    "multiline": "multiline = true",
    "name": 'name = "people"',
    "names": 'names = ["age", "sex"]',
    "neighbours": 'neighbours = "add-remove"',
    "on": 'on = "town"',
    "other": 'other = "others"',
    "privacy": '[privacy] with unit = "person" and epsilon = 1.0',
    "queries": '[[queries]] with name = "people" and ask = ["count"]',
    "selection_delta": "selection_delta = 5e-7",
    "rows": 'rows = [["north", "Lille"], ["south", "Toulon"]]',
    "size": "size = 50000",
    "source": 'source = "people.csv"',
    "table": '[table] with source = "people.csv"',
    "thousands": 'thousands = "."',
    "type": 'type = "integer"',
    "unit": 'unit = "person"',
    "upper": "upper = 120",
    "weight": "weight = 2",
    "where": 'where = { age = { at_least = 18 }, sex = ["f"] }',
}


def told(problem: ValidationError, root: str) -> InvalidParameter:
    """The first mistake that a declaration was refused for; `root` is where the declaration stands."""
    first, *others = problem.errors()
    if first["type"] == "missing":  # an unknown one beside it is what was meant
        beside = (each for each in others if each["type"] == "extra_forbidden")
        first = next((each for each in beside if each["loc"][:-1] == first["loc"][:-1]), first)
    held = first.get("ctx", {})
    path, either = _path(first["loc"], [value for value in held.values() if isinstance(value, str)])
    where, name = ".".join(path if root in ("", *path[:1]) else [root, *path]), (path or [root])[-1]
    if first["type"] == "missing":
        return InvalidParameter(
            f"The declaration '{where}' is missing. Add it{_example(name, ', as in ', where)}."
        )
    if first["type"] == "extra_forbidden":
        if "where" in path:
            remedy = f"Write conditions{_example('where', ' like ')}."
            return InvalidParameter(f"The declaration '{where}' is unknown. {remedy}")
        fields = [field for field, example in _EXAMPLES.items() if example.startswith(field)]
        near = difflib.get_close_matches(name, fields, n=1)
        meant = f" Did you mean '{near[0]}'?" if near and near[0] != name else ""
        return InvalidParameter(
            f"The declaration '{where}' is unknown.{meant} Check its spelling, or leave it out."
        )
    reason = _PLAIN.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    numbers = {key: f"{value:,g}" for key, value in held.items() if isinstance(value, float)}
    reason = reason.format(**{**held, **numbers}).replace("Input should be", "it must be")
    reason = "it must be a number" if either and first["type"].endswith("_type") else reason
    remedy = _example(name, " Write it like ", where) if first["type"] in _PLAIN else ""
    if "type" in str(held.get("discriminator", "")):
        remedy = _example("type", " Write it like ")
    if not remedy and reason.endswith("a block of fields"):
        remedy = f" Write it under [{where}]"
    return InvalidParameter(f"The declaration '{where}' is wrong: {reason}.{remedy}{'.' if remedy else ''}")


def _path(place: tuple[str | int, ...], kinds: list[str]) -> tuple[list[str], bool]:
    """Where a mistake is, by names that people wrote; and whether several types would have been right.

    Of those only the first is told.
    """
    path: list[str] = []
    for part in place:
        hidden = part in (*_TYPES, *kinds) or str(part).startswith(("tuple[", "literal["))
        if not hidden and not (isinstance(part, int) and path[-1:] == ["where"]):  # conditions have names
            path.append(str(part))
    either = path[-1:] in (["int"], ["float"])
    return (path[:-1] if either else path), either


def _example(name: str, before: str, where: str = "") -> str:
    block = where.split(".", maxsplit=1)[0]
    example = _EXAMPLES.get(f"{block}.{name}", _EXAMPLES.get(name))
    return f"{before}{example}" if example else ""
