"""What the line of a charge states, as far as it is known before the charge."""

import getpass
import json
from functools import cache
from importlib.metadata import version
from typing import NamedTuple

from sourdine.accounting.ledger.block import Block
from sourdine.accounting.ledger.cost import Cost
from sourdine.accounting.ledger.text import check_text
from sourdine.core import check


class Statement(NamedTuple):
    """What a charge costs and what its line will state, before and after what the time adds."""

    cost: Cost
    before: str
    after: str


def state(
    block: Block,
    purpose: str,
    author: str | None,
    secure: bool | None,
    digest: str | None,
) -> Statement:
    """The statement of a block and the digest of what was declared."""
    who = author if author is not None else _user()
    check_text("purpose", purpose)
    check_text("author", who)
    stated = f'"purpose": {json.dumps(purpose)}, "author": {json.dumps(who)}, "price": "{block.cost.price}"'
    stated += f', "software": {json.dumps(_software())}'
    if secure is not None:
        stated += f', "secure": {json.dumps(check.boolean("Ledger", "secure", secure))}'
    if digest is not None:
        stated += f', "declared_digest": "{digest}"'
    return Statement(block.cost, stated, f'"spends": {block.text}')


@cache
def _software() -> str:
    return f"sourdine {version('sourdine')}"


@cache
def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
