"""What a half-filled specification still lacks, and what is wrong with it, field by field.

Everything is said by the readers that a plan and a release use: there is no second set of rules here.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import in_files
from sourdine.frames.declared import mistakes_of
from sourdine.frames.expressions.tree import decimal
from sourdine.frames.joins import Join, read_joins
from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.studio.draft import pointer_of
from sourdine.studio.folder import Folder
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.privacy import Privacy
from sourdine.tables.query import Query
from sourdine.tables.specification import BLANK, PrivacyBlock, Specification, TableBlock
from sourdine.tables.statistics.hierarchy import Hierarchy, read_hierarchies, with_columns, with_hierarchies

STEPS = ("table", "people", "columns", "questions", "budget", "check", "release", "result", "synthetic")
SERIES = (
    "This specification is of a series, which is paid once and published period by period. Studio shows and "
    "changes what it declares, but neither forecasts nor releases it: use 'sourdine series start' and "
    "'sourdine series publish', or take out its block [series]."
)
_OF_BUDGET = ("epsilon", "delta", "selection_delta", "confidence")
_OF_RELEASE = ("ledger",)
_OF_CHECK = ("quality",)


@dataclass(frozen=True)
class Message:
    """What is to be said at a field; `blank` if it only waits to be filled in."""

    words: str
    blank: bool = False


@dataclass
class Review:
    """Messages by the JSON pointer of their field, and the specification if it is whole."""

    messages: dict[str, Message] = field(default_factory=dict)
    specification: Specification | None = None
    schema: Schema | None = None
    unit: PrivacyUnit | None = None
    notice: str = ""  # what Studio does not do with it, whatever is filled in

    def at(self, pointer: str) -> Message | None:
        """What is to be said at a field."""
        return self.messages.get(pointer)

    def of(self, step: str) -> list[Message]:
        """What is to be said in a step."""
        return [each for pointer, each in self.messages.items() if step_of(pointer) == step]

    def left(self, step: str) -> str:
        """How much is left to do in a step, in words; nothing if it is done."""
        messages = self.of(step)
        wrong, blank = sum(not each.blank for each in messages), sum(each.blank for each in messages)
        said = [f"{wrong} to fix"] if wrong else []
        return ", ".join([*said, f"{blank} to fill in"] if blank else said)

    def add(self, pointer: str, words: str, *, blank: bool = False) -> None:
        """Say something at a field, unless something is said there already."""
        sentence = f"{words[:1].upper()}{words[1:]}{'' if words.endswith(('.', '?')) else '.'}"
        self.messages.setdefault(pointer, Message(sentence, blank))


def step_of(pointer: str) -> str:
    """The step that a field is shown in."""
    block, _, rest = pointer[1:].partition("/")
    if block in ("columns", "joins", "hierarchies"):
        return "columns"
    if block == "queries":
        return "questions"
    if block == "synthetic":
        return "synthetic"
    if block == "privacy":
        if rest in _OF_BUDGET:
            return "budget"
        return "release" if rest in _OF_RELEASE else "check" if rest in _OF_CHECK else "people"
    return "table"


@in_files()
def review(blocks: Mapping[str, Any], folder: Folder, base: Path) -> Review:
    """Look at all that a specification says; of the table, not even the header is looked at."""
    found = Review()
    _review_table(blocks.get("table", {}), folder, base, found)
    privacy = _review_privacy(blocks.get("privacy", {}), folder, base, found)
    public = _review_public(blocks, folder, base, found)
    schema = _review_columns(blocks.get("columns", {}), public, found)
    found.schema = schema
    if privacy is not None:
        _review_queries(blocks.get("queries", []), schema, privacy, public, found)
        found.unit = _unit(privacy)
    if "series" in blocks:
        found.notice = SERIES
    if found.messages or found.notice:
        return found
    try:
        found.specification = Specification.read(blocks, base)
    except SourdineError as problem:
        others = {name: each for name, each in blocks.items() if name != "synthetic"}
        with suppress(SourdineError):  # a mistake about the synthetic table stops nothing else
            found.specification = Specification.read(others, base) if others != blocks else None
        found.add("/queries" if found.specification is None else "/synthetic", str(problem))
    return found


def _review_table(block: Any, folder: Folder, base: Path, found: Review) -> None:
    if _is_blank(block.get("source", BLANK)):
        found.add("/table/source", "Choose the table.", blank=True)
        return
    table = _validate(TableBlock, block, ("table",), found)
    if table is None:
        return
    try:
        for each in table.sources:
            folder.check_files(base, each)
    except InvalidParameter as problem:
        found.add("/table/source", str(problem))


def _review_privacy(block: Any, folder: Folder, base: Path, found: Review) -> PrivacyBlock | None:
    for name in ("unit", "epsilon"):
        if _is_blank(block.get(name, BLANK)):
            found.add(pointer_of("privacy", name), "Fill this in.", blank=True)
    if any(_is_blank(each) for each in block.values()):
        return None
    made: PrivacyBlock | None = _validate(PrivacyBlock, block, ("privacy",), found)
    if made is not None and made.ledger is not None:
        try:
            folder.ledger_at(base, made.ledger)
        except SourdineError as problem:
            found.add("/privacy/ledger", str(problem))
    return made


@dataclass(frozen=True)
class _Public:
    """Public tables beside the private one: those that are joined, and those of hierarchies."""

    joins: tuple[Join, ...] = ()
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)


def _review_public(blocks: Mapping[str, Any], folder: Folder, base: Path, found: Review) -> _Public:
    """The public files that a specification names, which must lie in the folder too."""
    for kind in ("joins", "hierarchies"):
        for name, block in blocks.get(kind, {}).items():
            try:
                for held in (block.get("file"), block.get("table")) if isinstance(block, Mapping) else ():
                    for each in held if isinstance(held, list) else [held]:
                        if isinstance(each, str):
                            folder.check_files(base, each)
            except InvalidParameter as problem:
                found.add(pointer_of(kind, name), str(problem))
    if any(pointer.startswith(("/joins", "/hierarchies")) for pointer in found.messages):
        return _Public()
    try:
        return _Public(
            read_joins(blocks.get("joins", {}), base), read_hierarchies(blocks.get("hierarchies", {}), base)
        )
    except InvalidParameter as problem:
        found.add("/columns", str(problem))
        return _Public()


def _review_columns(columns: Any, public: _Public, found: Review) -> Schema:
    """The columns that are declared as they should be; what is computed of them is read with them all."""
    good: dict[str, Any] = {}
    if not columns:
        found.add("/columns", "Declare at least one column.", blank=True)
    for name, block in columns.items():
        blanks = list(_blanks(block))
        for each in blanks:
            words = "Choose what it holds, or leave it out." if each == "type" else "Fill this in."
            found.add(pointer_of("columns", name, each), words, blank=True)
            if each == "type":
                break
        if "type" in blanks:
            continue
        if isinstance(block, Mapping) and "expression" not in block:
            made = _validate(Schema, {"columns": {name: block}}, (), found)
            if made is not None and not blanks:
                good[name] = block
        else:
            _read_derived(name, block, good, found)
    return Schema.read(with_columns(good, public.hierarchies))


def _read_derived(name: str, block: Any, good: dict[str, Any], found: Review) -> None:
    try:
        Schema.read({**good, name: block})
    except InvalidParameter as problem:
        found.add(pointer_of("columns", name), str(problem))
    else:
        good[name] = block


def _review_queries(
    queries: Any, schema: Schema, privacy: PrivacyBlock, public: _Public, found: Review
) -> None:
    if not queries:
        found.add("/queries", "Ask at least one question.", blank=True)
    waiting = any(pointer.startswith("/columns") for pointer in found.messages)
    names: set[str] = set()
    for place, block in enumerate(queries):
        pointer = pointer_of("queries", place)
        try:
            query = _query(block, schema, _unit(privacy), public)
            if _is_blank(query.name):
                found.add(f"{pointer}/name", "Fill this in.", blank=True)
            if query.name in names:
                found.add(f"{pointer}/name", f"Two questions are called '{query.name}'. Rename one.")
            names.add(query.name)
            ReleasePlan(
                schema=schema,
                queries=(query,),
                privacy=Privacy(
                    epsilon=decimal(privacy.epsilon),
                    delta=privacy.delta,
                    selection_delta=privacy.selection_delta,
                ),
                unit=_unit(privacy),
                neighbours=Neighbours(privacy.neighbours),
            )
        except SourdineError as problem:
            # a column that still waits for its bounds is told of where it waits
            found.add(pointer, str(problem), blank=waiting)


def _query(block: Any, schema: Schema, unit: PrivacyUnit, public: _Public) -> Query:
    if isinstance(block, Mapping) and "sql" in block:
        from sourdine.tables.sql import SqlTable, read_block

        return read_block(block, SqlTable(schema=schema, unit=unit, joins=public.joins)).query
    return Query.read(with_hierarchies(block, public.hierarchies) if isinstance(block, Mapping) else block)


def _unit(privacy: PrivacyBlock) -> PrivacyUnit:
    return PrivacyUnit(
        name=privacy.unit, column=privacy.column, max_rows=privacy.max_rows, max_groups=privacy.max_groups
    )


def _validate(kind: Any, block: Any, root: tuple[str, ...], found: Review) -> Any:
    """What a block declares, or None and a message at each field that is wrong."""
    try:
        return kind.model_validate(block)
    except ValidationError as problem:
        for each in mistakes_of(problem, ".".join(root)):
            found.add(pointer_of(*root, *each.path), each.reason)
        return None


def _blanks(block: Any) -> Iterator[str]:
    """The fields of a column's block that still wait."""
    if isinstance(block, Mapping):
        yield from (name for name, content in block.items() if _is_blank(content))


def _is_blank(content: Any) -> bool:
    return content == BLANK or (isinstance(content, list) and BLANK in content)


# What a column may be declared as, by its name and by the type that its file states: never by a value.


TYPES = {
    "integer": "whole numbers",
    "real": "numbers",
    "category": "a known list of keys",
    "flag": "true or false",
    "text": "keys nobody can list",
    "date": "days",
    "datetime": "days with times",
}
FIELDS: dict[str, dict[str, object]] = {  # what a declaration cannot do without
    "integer": {"lower": BLANK, "upper": BLANK},
    "real": {"lower": BLANK, "upper": BLANK},
    "category": {"keys": [BLANK]},
    "flag": {},
    "text": {},
    "date": {"first": BLANK, "last": BLANK, "period": "month"},
    "datetime": {"first": BLANK, "last": BLANK, "period": "month"},
}


@dataclass(frozen=True)
class Suggestion:
    """A declaration to begin with, and why; none if the column is better left out."""

    block: dict[str, object] | None
    why: str
    hints: dict[str, str] = field(default_factory=dict)  # what a blank may be, by its field

    @property
    def words(self) -> str:
        """What is suggested, as people say it."""
        if self.block is None:
            return "leave it out"
        kind = TYPES[str(self.block["type"])]
        lower, upper = self.block.get("lower", BLANK), self.block.get("upper", BLANK)
        ends = [f"from {lower}"] if lower != BLANK else []
        return " ".join([kind, *ends, *([f"to {upper}"] if upper != BLANK else [])])


def _numbers(kind: str, lower: object = BLANK, upper: object = BLANK) -> dict[str, object]:
    return {"type": kind, "lower": lower, "upper": upper}


_RULES: tuple[tuple[str, Suggestion], ...] = (
    (
        r"(id|uid|uuid|key|nr|no|ssn|nir|iban)|.*_(id|uid|uuid|key|nr)|(id|person|patient|user)_?(id|nr|no|number)",
        Suggestion(None, "It tells people or records apart. Use it as the unit's column, if at all."),
    ),
    (
        r".*(name|mail|phone|address)|(.*_)?(street|ip)",
        Suggestion(None, "It may point to one person, and is no answer to a question."),
    ),
    (r"age|.*_age|age_.*", Suggestion(_numbers("integer", 0, 120), "An age in years.")),
    (
        r"(birth_?)?year|.*_year|year_.*",
        Suggestion(_numbers("integer"), "A year.", {"lower": "1900", "upper": "2030"}),
    ),
    (
        r"sex|gender",
        Suggestion({"type": "category", "keys": [BLANK]}, "A short list.", {"keys": "f\nm"}),
    ),
    (
        r"(is|has|was|did)_.*|smoker|active|married|employed|deceased|consent",
        Suggestion({"type": "flag"}, "It reads like yes or no."),
    ),
    (
        r"(date|day|born|joined|seen|birthday|dob)|.*(_date|_day|_on)|(date)_.*",
        Suggestion(
            {"type": "date", **FIELDS["date"]}, "A day.", {"first": "2020-01-01", "last": "2029-12-31"}
        ),
    ),
    (
        r"(time|timestamp|datetime)|.*(_at|_time|timestamp)",
        Suggestion(
            {"type": "datetime", **FIELDS["datetime"]},
            "A time.",
            {"first": "2020-01-01", "last": "2029-12-31"},
        ),
    ),
    (
        r".*(pay|salary|wage|income|price|cost|amount|revenue|turnover|rent|spend|spent|fee).*",
        Suggestion(_numbers("real", 0), "An amount of money.", {"upper": "200000"}),
    ),
    (
        r".*(percent|percentage|pct).*",
        Suggestion(_numbers("real", 0, 100), "A share in per cent."),
    ),
    (
        r"(n|num|number|count|visits|children|rooms|hours|days|weeks|months|years)(_.*)?|.*_(count|num|visits|hours|days)",
        Suggestion(_numbers("integer", 0), "It counts something.", {"upper": "100"}),
    ),
    (
        r"height(_cm)?|weight(_kg)?",
        Suggestion(_numbers("real", 0), "A measure of a body.", {"upper": "300"}),
    ),
    (
        r".*_(mm|cm|m|km|mg|g|kg|ml|l|ms|s|sec|min|usd|eur|gbp|mpg|hp)|"
        r"(.*_)?(length|width|depth|height|mass|weight|distance|duration|area|volume|score|rate|speed)(_.*)?",
        Suggestion(_numbers("real", 0), "A measure.", {"upper": "1000"}),
    ),
    (
        r"(.*_)?(region|department|country|state|province|sector|industry|status|category|class|level|kind|type|grade|"
        r"species|island|race|ethnicity|education|marital|relationship|workclass|work_class|religion|nationality|"
        r"language|colou?r|brand|group|team|origin|continent)(_.*)?",
        Suggestion({"type": "category", "keys": [BLANK]}, "It reads like a list.", {"keys": "north\nsouth"}),
    ),
    (
        r"(town|city|village|place|municipality|postcode|zip|occupation|job|diagnosis|product)(_.*)?",
        Suggestion({"type": "text"}, "A list that is too long to write down."),
    ),
)


def suggest(name: str, stated: str | None) -> Suggestion | None:
    """What a column may be, by its name and by the type that its file states, '' if it states none.

    >>> suggest("age", "").words
    'whole numbers from 0 to 120'
    >>> suggest("age", "text") is None, suggest("q17", "integer").words
    (True, 'whole numbers')
    """
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip()).lower().replace(" ", "_").replace("-", "_")
    by_name = next((each for pattern, each in _RULES if re.fullmatch(pattern, plain)), None)
    if stated is None:
        return Suggestion(None, "Its type cannot be asked about.")
    if by_name is not None and (by_name.block is None or _fits(str(by_name.block["type"]), stated)):
        return by_name
    kind = {"zoned": "datetime", "text": ""}.get(stated, stated)
    if not kind:
        return None
    more = {"zone": BLANK} if stated == "zoned" else {}
    return Suggestion({"type": kind, **FIELDS[kind], **more}, "The file states this type.")


def _fits(kind: str, stated: str) -> bool:
    """Whether a column of the type that its file states can be declared so."""
    alike = {
        "": tuple(TYPES),
        "integer": ("integer", "real", "category"),
        "real": ("real",),
        "text": ("category", "text"),
        "zoned": (),
        "datetime": ("datetime", "date"),
    }
    return kind in alike.get(stated, (stated,))


# What somebody typed as the value that it means, by its field; what cannot be read stays as it was typed.
#
# The reader of specifications then says what is wrong with it, and the page shows it again.


_WHOLE, _NUMBER = (
    re.compile(r"[+-]?[0-9]{1,300}"),
    re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"),
)
NUMBERS = (
    "lower",
    "upper",
    "granularity",
    "size",
    "epsilon",
    "delta",
    "selection_delta",
    "confidence",
    "weight",
)
WHOLE = ("max_rows", "max_groups", "at_least", "k", "rows")
FLAGS = ("quality", "header", "multiline")
OPTIONAL = (
    *("column", "max_rows", "max_groups", "size", "delta", "selection_delta", "ledger", "weight"),
    *("granularity", "missing", "at_least", "other", "zone", "format", "period"),
    *("encoding", "delimiter", "decimal", "thousands"),
    *("target", "rows", "mark", "leave_out"),
)


def read_value(field: str, text: object, block: Mapping[str, Any] | None = None) -> object:
    """The value of a field, None if it is to be left out, BLANK if it waits.

    >>> read_value("lower", "0"), read_value("lower", "1.5"), read_value("lower", "a few")
    (0, 1.5, 'a few')
    >>> read_value("keys", "north\\n south \\n"), read_value("delta", ""), read_value("upper", "")
    (['north', 'south'], None, 'FILL IN')
    """
    if isinstance(text, bool):
        return text
    if isinstance(text, list):
        return [str(each) for each in text]
    typed = str(text).strip()
    if field == "keys":
        return read_keys(typed)
    if not typed:
        return None if field in OPTIONAL else BLANK
    if field == "leave_out":
        return [line.strip() for line in typed.splitlines() if line.strip()]
    kind = (block or {}).get("type")
    if field in FLAGS:
        return typed.lower() == "true"
    if field in ("first", "last"):
        return read_moment(typed)
    if field in (*NUMBERS, *WHOLE) or (
        field == "missing" and kind in ("integer", "real") and typed != "drop"
    ):
        number = read_number(typed)
        real = kind == "real" and field in ("lower", "upper", "granularity", "missing")
        return float(number) if real and isinstance(number, int) and abs(number) < 1 << 53 else number
    if field == "missing" and kind == "flag" and typed in ("true", "false"):
        return typed == "true"
    return typed


def read_number(typed: str) -> int | float | str:
    """A number, also with commas or spaces between thousands; or what was typed."""
    plain = re.sub(r"(?<=[0-9])[, _\u00a0\u202f](?=[0-9]{3}(\D|$))", "", typed)
    if _WHOLE.fullmatch(plain):
        return int(plain)
    return float(plain) if _NUMBER.fullmatch(plain) else typed


def read_keys(typed: str) -> list[object]:
    """Keys from lines, or from one line with commas; whole numbers if all of them are."""
    parts = typed.splitlines() if "\n" in typed else typed.split(",")
    keys = [part.strip() for part in parts if part.strip()]
    if not keys:
        return [BLANK]
    if all(re.fullmatch(r"-?(0|[1-9][0-9]{0,18})", key) for key in keys):
        return [int(key) for key in keys]
    return list(keys)


def read_moment(typed: str) -> object:
    """A day or a time, or what was typed."""
    for kind in (date, datetime):
        try:
            return kind.fromisoformat(typed)
        except ValueError:
            continue
    return typed


def shown(content: object) -> str:
    """A value as it stands in a field of the page."""
    if content is None or content in (BLANK, [BLANK]):
        return ""
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, list):
        return "\n".join(map(shown, content))
    if isinstance(content, float) and content.is_integer() and abs(content) < 1e15:
        return str(int(content))
    return str(content)
