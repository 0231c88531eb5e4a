"""Output that no terminal refuses: what an encoding lacks is written in plain letters."""

import codecs
import contextlib
import io
import os
import sys
import unicodedata

_PLAIN = "sourdine.plain"
_LETTERS = {"ε": "epsilon", "δ": "delta", "ρ": "rho", "–": "-", "√": "sqrt ", "∞": "inf", "·": "|"}


def soften_streams() -> None:
    """Let stdout and stderr write any text, whatever the encoding of the terminal."""
    codecs.register_error(_PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_PLAIN)


def drop_output() -> None:
    """Forget what is still held for a reader that is gone: it would fail once more at the very end."""
    with contextlib.suppress(OSError, ValueError):  # not every stdout is a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plain(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    lacking = problem.object[problem.start : problem.end]
    return "".join(map(_letters, lacking)), problem.end


def _letters(character: str) -> str:
    """A character in ASCII: its name in letters, its plain form, or a question mark."""
    plain = unicodedata.normalize("NFKD", _LETTERS.get(character, character)).replace("\N{MINUS SIGN}", "-")
    return plain.encode("ascii", "ignore").decode() or "?"
