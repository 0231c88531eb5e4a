"""The bytes of a file, from any place on, decompressed where its name says that it is compressed.

What is compressed cannot be read from its middle. It is decompressed once, after the release is paid, into a
temporary file that has no name: only this process can read it, and it is gone with it.
"""

import gzip
import tempfile
import threading
import weakref
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, cast

from sourdine.core.errors import InvalidParameter

COMPRESSED = (".gz", ".zst")
_CHUNK = 1 << 22


def kind_of(path: Path) -> str:
    """The ending that tells what a file holds: of people.csv.gz it is .csv.

    >>> kind_of(Path("people.CSV.gz")), kind_of(Path("people.parquet"))
    ('.csv', '.parquet')
    """
    ending = path.suffix.lower()
    return Path(path.stem).suffix.lower() if ending in COMPRESSED else ending


@dataclass(frozen=True)
class Contents:
    """A file whose bytes can be read from any place on, by several threads."""

    path: Path
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def compressed(self) -> bool:
        """Whether the file's bytes stand for others."""
        return self.path.suffix.lower() in COMPRESSED

    def look(self, size: int) -> bytes:
        """The first bytes; OSError where they cannot be had."""
        try:
            with self._open() as file:
                return file.read(size)
        except (OSError, InvalidParameter):
            raise
        except Exception:  # each decompressor has errors of its own
            raise OSError("The file cannot be decompressed.") from None

    def read(self, start: int, size: int) -> bytes:
        """Some bytes from a place on; fewer at the end."""
        if self.compressed:
            with self._lock:
                self._whole.seek(start)
                return self._whole.read(size)
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read(size)

    @cached_property
    def length(self) -> int:
        """How many bytes there are; what is written behind them later is not read."""
        if not self.compressed:
            return self.path.stat().st_size
        with self._lock:
            return self._whole.seek(0, 2)

    def _open(self) -> IO[bytes]:
        ending = self.path.suffix.lower()
        if ending == ".gz":
            return cast(IO[bytes], gzip.open(self.path, "rb"))
        if ending == ".zst":
            return cast(IO[bytes], _zstandard(self.path))
        return self.path.open("rb")

    @cached_property
    def _whole(self) -> IO[bytes]:
        file = cast(IO[bytes], tempfile.TemporaryFile())  # noqa: SIM115 - it is closed with its owner
        weakref.finalize(self, file.close)
        with self._open() as source:
            while chunk := source.read(_CHUNK):
                file.write(chunk)
        return file


def _zstandard(path: Path) -> object:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            from backports import zstd  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise InvalidParameter(
                f"Reading {path} takes a package that is not installed. Run pip install backports.zstd, or "
                "decompress the file."
            ) from None
    return zstd.open(path, "rb")
