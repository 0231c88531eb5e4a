"""After a charge no error speaks with the words of an engine: they may quote records."""

from collections.abc import Iterator
from contextlib import contextmanager

from sourdine.core.errors import SourdineError


@contextmanager
def silence(missing: str) -> Iterator[None]:
    """While records are read, whatever goes wrong is told in the same sentences.

    Engines, drivers and decoders raise errors of many kinds, and some name a byte or a value. Errors of our
    own speak of declarations alone and pass.

    >>> with silence("there is no release"):
    ...     raise UnicodeDecodeError("utf-8", b"secret", 0, 1, "bad")
    Traceback (most recent call last):
    sourdine.core.errors.SourdineError: The table could not be read to its end, so there is no release. ...
    """
    try:
        yield
    except SourdineError:
        raise
    except Exception:
        raise SourdineError(
            f"The table could not be read to its end, so {missing}. What was charged stays charged, since "
            "part of the table was seen. Check that its file is whole and that the disk has room."
        ) from None
