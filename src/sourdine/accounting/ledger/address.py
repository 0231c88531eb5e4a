"""Where a ledger is: the path of a file, or an address on a server, which is shown without its secrets."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.core.lazy import install_line

_SCHEME = re.compile(r"postgres(ql)?:", re.IGNORECASE)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
NAME = "main"
"""What a ledger is called where an address names none."""


@dataclass(frozen=True)
class Address:
    """A ledger in a PostgreSQL database: how to reach it, and which of those there it is.

    A text of it, as in an error, holds no password.
    """

    reach: str = field(repr=False)
    shown: str
    name: str

    def __str__(self) -> str:
        return self.shown

    @property
    def schema(self) -> str:
        """The schema that holds its tables."""
        return f"sourdine_{self.name}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """The address that a text such as postgresql://analyst@db.example/budgets#survey gives."""
        reach, _, name = text.partition("#")
        if name and not _NAME.fullmatch(name):
            raise InvalidParameter(
                "The name of a ledger in a database, after '#', must be of 1 to 40 small letters, digits and "
                "underscores, and begin with a letter, as in postgresql://db.example/budgets#survey."
            )
        known = _parts(reach)
        host, port = known.get("host", ""), known.get("port", "")
        if (
            "@" in host + known.get("dbname", "")
            or "/" in port
            or not all(part.isdigit() for part in port.split(",") if part)
        ):
            raise _malformed()  # a password that is not escaped would be shown as part of the host
        user = f"{quote(known['user'])}@" if known.get("user") else ""
        within = quote(known.get("dbname", ""))
        folder = host if host.startswith("/") else ""
        shown = f"postgresql://{user}{'' if folder else host}{f':{port}' if port else ''}/{within}"
        shown += f"?host={folder}" if folder else ""
        return cls(reach, f"{shown}#{name or NAME}", name or NAME)


Place = Path | Address
"""Where a ledger is."""


def name_of(text: str) -> str:
    """What may be published of a place: the name of the file, or that of the ledger in its database.

    >>> name_of("data/survey.ledger"), name_of("postgresql://analyst:secret@db.example/budgets#survey")
    ('survey.ledger', 'survey')
    """
    return text.partition("#")[2] or NAME if _SCHEME.match(text) else Path(text).name


def place_of(source: Place | str) -> Place:
    """The place that a path or a text gives.

    >>> place_of("survey.ledger").name
    'survey.ledger'
    """
    if isinstance(source, Address):
        return source
    text = os.fspath(source)
    if not _SCHEME.match(text):
        return Path(text)
    if isinstance(source, Path):  # which has lost a slash, and perhaps an empty host
        raise InvalidParameter("The address of a ledger on a server must be given as a text, not as a Path.")
    return Address.parse(text)


def _parts(reach: str) -> dict[str, str]:
    try:
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise LedgerError(
            "A ledger on a PostgreSQL server needs psycopg, which is not installed. "
            f"Install it with: {install_line('postgres')}"
        ) from None
    from psycopg import Error

    try:
        return {name: str(value) for name, value in conninfo_to_dict(reach).items() if value is not None}
    except Error:
        raise _malformed() from None  # whose words may quote the password


def _malformed() -> InvalidParameter:
    return InvalidParameter(
        "The address of a ledger on a server is not one that PostgreSQL reads. Write it like "
        "postgresql://analyst@db.example:5432/budgets#survey, with special characters of a password "
        "escaped (@ is %40), or leave the password to a password file."
    )
