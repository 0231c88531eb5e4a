"""The specification as a file that is filled in step by step: the only thing that Studio keeps.

A change names a place in it and what stands there from now on. Comments, and whatever the page does not show,
stay as they are. Every text has a version, so that a change is made to what its author has seen, or not at
all: two tabs, or the page and an editor, never write over each other.
"""

import hashlib
import os
from collections.abc import Mapping, MutableMapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Item, Table

from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import in_files, value
from sourdine.core.text import parse_toml, toml_key, toml_text_of

Place = tuple[str | int, ...]
_BLOCKS = ("table", "privacy", "columns", "joins", "hierarchies")
_GONE = object()


class ChangedElsewhere(SourdineError):
    """The file is not what the author of a change has seen."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path.name} was changed meanwhile, in another tab or by another program. Nothing was written: "
            "the page now shows the file as it is. Make your last change again if it is still wanted."
        )


@dataclass(frozen=True)
class Edit:
    """What stands at a place from now on; nothing, if it is `None`."""

    at: Place
    content: object


def place_of(pointer: str) -> Place:
    """The place of a JSON pointer (RFC 6901); whole numbers are places in lists.

    >>> place_of("/columns/a~1b/lower")
    ('columns', 'a/b', 'lower')
    """
    if not pointer.startswith("/"):
        raise InvalidParameter("A place in the specification begins with a slash.")
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]
    return tuple(int(part) if parts[0] == "queries" and part.isdecimal() else part for part in parts)


def pointer_of(*place: object) -> str:
    """The JSON pointer of a place."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in place)


@dataclass(frozen=True)
class DraftFile:
    """A specification's path and text."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> "DraftFile":
        """The file as it is now."""
        try:
            return cls(path, toml_text_of(path))
        except OSError:
            raise InvalidParameter(f"{path.name} cannot be read. Check that it is there.") from None

    @property
    def version(self) -> str:
        """What tells this text from every other."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:24]

    @cached_property
    def blocks(self) -> Mapping[str, Any]:
        """What the file says, as blocks where there must be some, whoever wrote it."""
        blocks = _parsed(self.text, self.path)
        for name in _BLOCKS:
            _check_block(blocks.get(name, {}), name)
        for name, block in blocks.get("columns", {}).items():
            _check_block(block, f"columns.{name}")
        if not isinstance(blocks.get("queries", []), list):
            raise InvalidParameter("The queries must be a list of blocks. Write [[queries]] before each.")
        return blocks

    def with_edits(self, edits: Sequence[Edit]) -> "DraftFile":
        """The file with some changes, of which nothing is written yet."""
        document, wanted = tomlkit.parse(self.text.replace("\r\n", "\n")), deepcopy(dict(self.blocks))
        for edit in edits:
            _apply_plainly(wanted, edit)
            _apply(document, edit)
        text = tomlkit.dumps(document)
        if parse_toml(text, self.path) != wanted:
            raise SourdineError(
                f"{self.path.name} is written in a way that could not be changed safely. Nothing was "
                "changed: change it in an editor, and reload the page."
            )
        return DraftFile(self.path, text)

    def check_writable(self) -> None:
        """Refuse what could not be kept, before it is paid for."""
        if not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
            raise InvalidParameter(
                f"{self.path.name} or its folder cannot be written. Check their rights. Nothing was paid."
            )

    def write(self, over: "DraftFile") -> None:
        """Keep the file in the place of another text, if that is still there."""
        if DraftFile.read(self.path).version != over.version:
            raise ChangedElsewhere(self.path)
        try:
            disk.write_whole(self.path, self.text)
        except OSError as problem:
            raise InvalidParameter(
                f"{self.path.name} cannot be written ({problem.strerror}). Check its rights and its disk."
            ) from None


@lru_cache(maxsize=16)
def _parsed(text: str, path: Path) -> Mapping[str, Any]:
    """What a text says, which nobody changes; it is looked at for every move of a slider."""
    return parse_toml(text, path)


def _check_block(block: object, name: str) -> None:
    if not isinstance(block, Mapping):
        raise InvalidParameter(
            f"The declaration '{name}' is wrong: it must be a block. Write it in an editor."
        )


def _apply_plainly(content: Any, edit: Edit) -> None:
    """Make a change to plain dictionaries and lists."""
    whole = content
    *path, last = edit.at
    for part, following in zip(path, edit.at[1:], strict=True):
        if not isinstance(part, int) and part not in content:
            content[part] = [] if isinstance(following, int) else {}
        content = content[part]
    if edit.content is None:
        if isinstance(last, int):
            del content[last]
        else:
            content.pop(last, None)
        _drop_empty(whole, edit)
    elif isinstance(last, int) and last == len(content):
        content.append(deepcopy(edit.content))
    else:
        content[last] = deepcopy(edit.content)


def _drop_empty(whole: Any, edit: Edit) -> None:
    """Leave out what holds no block any more: a heading such as [columns] need not have been written."""
    first = edit.at[0]
    if len(edit.at) == 2 and first in whole and not whole[first]:
        del whole[first]


def _apply(content: Any, edit: Edit) -> None:
    """Make a change to a document with its comments."""
    whole = content
    *path, last = edit.at
    for number, part in enumerate(path):
        if not isinstance(part, int) and part not in content:
            if number == 0 and isinstance(edit.at[1], int):
                content[part] = tomlkit.aot()
            else:
                _put(content, part, tomlkit.table(is_super_table=len(edit.at) > number + 2))
        content = content[part]
    if edit.content is None:
        if isinstance(last, int) or last in content:
            del content[last]
        _drop_empty(whole, edit)
    elif isinstance(last, int) and last == len(content):
        content.append(_block(edit.content))
    elif isinstance(edit.content, Mapping) and len(edit.at) == 2:
        if isinstance(last, int) or last in content:
            _replace(content[last], edit.content)
        else:
            content[last] = _block(edit.content)
    else:
        assert isinstance(last, str)
        _put(content, last, _item(edit.content))


def _put(table: Any, name: str, item: Item) -> None:
    """Set a field where it stands, or after the last one: comments at the end are about what follows."""
    body = table.value.body if isinstance(table, Table) else []
    fields = [key for key, held in body if key is not None and not isinstance(held, MutableMapping)]
    if name in table:
        table[name] = item
    elif fields and not isinstance(item, MutableMapping):
        table.value._insert_after(fields[-1], name, item)
    else:
        table[name] = item


def _replace(held: Any, fields: Mapping[str, object]) -> None:
    """Another block in the place of one, whose comments stay with the fields that stay."""
    for each in [each for each in held if each not in fields]:
        del held[each]
    for each, inner in fields.items():
        if held.get(each, _GONE) != inner:
            _put(held, each, _item(inner))


def _block(fields: object) -> Item:
    assert isinstance(fields, Mapping)
    table = tomlkit.table()
    for name, content in fields.items():
        table.append(name, _item(content))
    table.add(tomlkit.nl())
    return table


def block_text(block: object) -> str:
    """What a block says, one field on each line, as it is edited as text."""
    with in_files():
        return "\n".join(field_lines(block))


def field_lines(block: object) -> list[str]:
    """The fields of a block, each as a line of TOML, or as code where the notation is Python's."""
    fields = block.items() if isinstance(block, Mapping) else ()
    return [f"{toml_key(name)} = {value(each)}" for name, each in fields]


def _item(content: object) -> Item:
    """A value as it is written in a line; blocks within it stand in braces."""
    with in_files():
        item: Item = tomlkit.parse(f"x = {value(content)}\n")["x"]
    return item
