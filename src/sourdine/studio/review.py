"""What a half-filled specification still lacks, and what is wrong with it, field by field.

Everything is said by the readers that a plan and a release use: there is no second set of rules here.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.text.notation import in_files
from sourdine.frames.expressions.kinds import decimal
from sourdine.frames.joins import Join, read_joins
from sourdine.frames.mistakes import mistakes_of
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.schema import Schema
from sourdine.studio.draft_file import pointer_of
from sourdine.studio.folder import Folder
from sourdine.tables.blocks import BLANK, PrivacyBlock, TableBlock
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.privacy import Privacy
from sourdine.tables.query import Query
from sourdine.tables.specification import Specification
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
