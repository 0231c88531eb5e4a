"""What to write, as the caller writes it: in Python, or in a file of TOML and on a command line.

A remedy must be ready to paste. Declarations come from calls and from files, and the same code reads both.
So a sentence asks here how a setting is written, and whoever reads files says so with `in_files`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from sourdine.core.format import plain
from sourdine.core.text.toml import toml_key, toml_text

_FILES: ContextVar[bool] = ContextVar("declarations come from files", default=False)


@contextmanager
def in_files() -> Iterator[None]:
    """While this lasts, or around a function, what is wrong stands in a file or on a command line.

    >>> setting("delta", 1e-6)
    'delta=1e-6'
    >>> with in_files():
    ...     setting("delta", 1e-6)
    'delta = 1e-6'
    """
    before = _FILES.set(True)
    try:
        yield
    finally:
        _FILES.reset(before)


def either(python: str, file: str) -> str:
    """The one of two texts that the caller can use."""
    return file if _FILES.get() else python


def value(content: object) -> str:
    """A declared value as it is written.

    >>> value({"mean": "pay"}), value([True, 0.5])
    ('{"mean": "pay"}', '[True, 0.5]')
    """
    files = _FILES.get()
    if isinstance(content, bool):
        return str(content).lower() if files else str(content)
    if isinstance(content, str):
        return toml_text(content)  # which Python reads alike
    if isinstance(content, Mapping):
        pairs = (
            f"{toml_key(name)} = {value(each)}" if files else f"{toml_text(name)}: {value(each)}"
            for name, each in content.items()
        )
        return f"{{ {', '.join(pairs)} }}" if files else f"{{{', '.join(pairs)}}}"
    if isinstance(content, Sequence):
        return f"[{', '.join(map(value, content))}]"
    if isinstance(content, float):
        return f"{content:.1f}" if content.is_integer() else plain(content)
    return str(content)


def setting(name: str, content: object) -> str:
    """A name with its value: an argument of a call, or a line of a file."""
    return f"{name} = {value(content)}" if _FILES.get() else f"{name}={value(content)}"


def entry(name: str, content: object) -> str:
    """A name with its value within a block, which is a dictionary in Python."""
    return f"{name} = {value(content)}" if _FILES.get() else f"{toml_text(name)}: {value(content)}"


def block(kind: str, name: str, **fields: object) -> str:
    """Fields of a thing that has a name.

    >>> block("columns", "pay", type="real", lower=0)
    'columns={"pay": {"type": "real", "lower": 0}}'
    >>> with in_files():
    ...     block("columns", "pay", type="real", lower=0)
    '[columns.pay] type = "real", lower = 0'
    """
    if not _FILES.get():
        return f"{kind}={value({name: fields})}"
    return f"[{kind}.{toml_key(name)}] {', '.join(entry(*field) for field in fields.items())}"


def group(kind: str, **fields: object) -> str:
    """Fields of the only thing of a kind.

    >>> group("text", encoding="cp1252")
    'text={"encoding": "cp1252"}'
    >>> with in_files():
    ...     group("text", encoding="cp1252")
    'encoding = "cp1252"'
    """
    if not _FILES.get():
        return f"{kind}={value(fields)}"
    return " and ".join(setting(*field) for field in fields.items())
