"""The files beside a certificate, and every way in which a folder differs from what was published.

A file is read once, in pieces, through a handle that follows no link and waits for no pipe. What has changed
is looked at again, to say what became of it: other line ends, an end cut off, another file's content.
"""

import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

from sourdine.core import files as disk
from sourdine.core.format import counted

_PIECE = 1 << 20
_LOOKED_AT = 1 << 28  # bytes of a changed file of which it is still asked what became of it
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OF_SYSTEMS = {".DS_Store", "Thumbs.db", "ehthumbs.db", "desktop.ini", ".localized"}
_OF_PROGRAMS = ("~$", ".~lock.", "._")


class Deviance(StrEnum):
    """How something differs from what was published."""

    CHANGED = "changed"
    LINE_ENDS = "line ends changed"
    MARK = "byte order mark added"
    CUT_SHORT = "cut short"
    LONGER = "made longer"
    EXCHANGED = "exchanged"
    MISSING = "missing"
    RENAMED = "renamed"
    ADDED = "added"
    FOLDER_ADDED = "folder added"
    LINK = "link"
    FOLDER = "folder in its place"
    NO_FILE = "no ordinary file"
    UNREADABLE = "unreadable"
    UNSTEADY = "being written"
    OUTSIDE = "outside the folder"
    UNSIGNED = "not signed"
    ANOTHER_SIGNED = "another certificate was signed"
    FORGED = "forged signature"
    SIGNATURES = "signatures unreadable"
    UNPAID = "payment not confirmed"
    ANOTHER_RELEASE = "of another release"
    CONTRADICTED = "not as stated"


@dataclass(frozen=True, kw_only=True)
class Discrepancy:
    """One thing that is not as it was published, in a sentence."""

    kind: Deviance
    name: str
    words: str


@dataclass(frozen=True, kw_only=True)
class FileComparison:
    """What lies beside a certificate: files as published, others, and what is wrong.

    `absent` are files that were not asked for, since only the certificate was given. `uncovered` are files of
    which an older certificate says nothing. `harmless` are those that systems leave in folders that are
    opened.
    """

    same: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    discrepancies: tuple[Discrepancy, ...] = ()


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Trouble(Exception):
    """A file that cannot be compared, and why."""

    def __init__(self, kind: Deviance, words: str) -> None:
        super().__init__(words)
        self.kind = kind


def compare_files(
    folder: Path,
    digests: Mapping[str, str],
    sizes: Mapping[str, int],
    *,
    own: frozenset[str],
    complete: bool,
    alone: bool = False,
) -> FileComparison:
    """Compare what is in a folder with digests by name; `own` are the certificate and its signatures.

    With `alone` the folder is no release but the place of a certificate: files that are not there are
    `absent`, and what else is there is nobody's business.
    """
    bad = [_outside(name) for name in digests if not _inside(name) or name in own]
    names = [name for name in digests if _inside(name) and name not in own]
    covered = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    entries = {} if alone else dict(_walk(folder, covered))
    marks: dict[str, tuple[str, int]] = {}
    absent: list[str] = []
    for name in names:
        there = os.path.lexists(folder / name) if alone else name in entries
        if not there:
            absent.append(name)
            continue
        try:
            marks[name] = _mark(folder / name)
        except _Trouble as problem:
            bad.append(Discrepancy(kind=problem.kind, name=name, words=f"{name} {problem}"))
    same = tuple(name for name in names if name in marks and marks[name][0] == digests[name])
    changed = {name: mark for name, mark in marks.items() if name not in same}
    bad += [_changed(folder, name, mark, digests, sizes) for name, mark in changed.items()]
    if alone:
        return FileComparison(same=same, absent=tuple(absent), discrepancies=tuple(bad))
    others = {name: mode for name, mode in entries.items() if name not in digests and name not in own}
    harmless = tuple(name for name, mode in others.items() if stat.S_ISREG(mode) and _left_behind(name))
    others = {name: mode for name, mode in others.items() if name not in harmless and name not in covered}
    bad += _lost(folder, absent, others, digests, sizes)
    moved = {each.name for each in bad if each.kind is Deviance.RENAMED}
    uncovered: tuple[str, ...] = ()
    if complete:
        bad += [_added(name, mode) for name, mode in others.items() if name not in moved]
    else:
        uncovered = tuple(name for name in others if name not in moved)
    if dict(_walk(folder, covered)).keys() != entries.keys():
        words = "Files came or went while the folder was compared. Wait until nothing writes there any more."
        bad.append(Discrepancy(kind=Deviance.UNSTEADY, name=".", words=words))
    return FileComparison(same=same, uncovered=uncovered, harmless=harmless, discrepancies=tuple(bad))


def _walk(folder: Path, covered: Collection[str], above: str = "") -> Iterator[tuple[str, int]]:
    """All that is in a folder and in those below that are covered, with its mode; no link is followed."""
    with os.scandir(folder) as handle:
        listed = sorted(handle, key=lambda entry: entry.name)
    for entry in listed:
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except FileNotFoundError:  # it went away just now, which the second look shows
            continue
        yield above + entry.name, mode
        if stat.S_ISDIR(mode) and above + entry.name in covered:
            yield from _walk(Path(entry.path), covered, f"{above}{entry.name}/")


def _inside(name: str) -> bool:
    """Whether a name leads to something in the folder, on every system."""
    parts = name.split("/")
    odd = "\\" in name or "\0" in name or ":" in parts[0]
    return not odd and all(part not in ("", ".", "..") for part in parts)


def _outside(name: str) -> Discrepancy:
    words = f"The certificate names {name!r}, which is no file of a release: it was tampered with."
    return Discrepancy(kind=Deviance.OUTSIDE, name=name, words=words)


def _left_behind(name: str) -> bool:
    """Whether systems and programs leave such a file in a folder that somebody opened."""
    last = PurePosixPath(name).name
    return last in _OF_SYSTEMS or last.startswith(_OF_PROGRAMS)


def _mark(path: Path) -> tuple[str, int]:
    """The digest and the size of an ordinary file that nobody writes meanwhile."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        raise _Trouble(
            Deviance.LINK, "is a link to something elsewhere, and not the file that was published."
        )
    if stat.S_ISDIR(mode):
        raise _Trouble(Deviance.FOLDER, "is a folder, and not the file that was published.")
    if not stat.S_ISREG(mode):
        raise _Trouble(Deviance.NO_FILE, "is no ordinary file, such as a pipe or a device.")
    ways = ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC")
    try:
        handle = os.open(path, os.O_RDONLY | sum(getattr(os, way, 0) for way in ways))
        with os.fdopen(handle, "rb") as file:
            before = os.fstat(handle)
            content = hashlib.file_digest(file, "sha256").hexdigest()
            after = os.fstat(handle)
    except OSError as problem:
        why = problem.strerror or "no reason is known"
        raise _Trouble(Deviance.UNREADABLE, f"cannot be read ({why}), so nothing is known of it.") from None
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise _Trouble(Deviance.UNSTEADY, "was written while it was compared. Wait until that is done.")
    return content, after.st_size


def _changed(
    folder: Path, name: str, mark: tuple[str, int], digests: Mapping[str, str], sizes: Mapping[str, int]
) -> Discrepancy:
    """What became of a file whose content is another."""
    content, size = mark
    published, then = digests[name], sizes.get(name)
    other = next((each for each, known in digests.items() if known == content), None)
    kind, words = Deviance.CHANGED, "was changed: its content is not what was published"
    if other is not None:
        kind, words = Deviance.EXCHANGED, f"was exchanged: it holds what was published as {other}"
    elif size <= _LOOKED_AT and (only := only_differs(folder / name, published)):
        kind = only
        words = {
            Deviance.LINE_ENDS: "has other line ends: some program or copy turned LF into CRLF, or back",
            Deviance.MARK: "was saved anew by a program that put a byte order mark before it",
        }[only]
    elif then is not None and size < then:
        kind = Deviance.CUT_SHORT
        words = f"was cut short or changed: it has {size:,} of {counted(then, 'byte')}"
    elif then is not None and size > then:
        kind = Deviance.LONGER
        words = f"was changed or added to: it has {counted(size, 'byte')}, and {then:,} were published"
    elif then is not None:
        words = f"was changed, though it is as long as it was ({counted(size, 'byte')})"
    return Discrepancy(kind=kind, name=name, words=f"{name} {words}.")


def _lost(
    folder: Path,
    absent: list[str],
    others: Mapping[str, int],
    digests: Mapping[str, str],
    sizes: Mapping[str, int],
) -> Iterator[Discrepancy]:
    """Files that are not there, or are there by another name."""
    marks: dict[str, str] = {}
    wanted = {sizes.get(name) for name in absent}
    for name, mode in others.items() if absent else ():
        path = folder / name
        if stat.S_ISREG(mode) and (None in wanted or path.stat().st_size in wanted):
            try:
                marks.setdefault(_mark(path)[0], name)
            except _Trouble:
                continue
    for name in absent:
        if (by := marks.get(digests[name])) is not None:
            words = f"{name} is missing. What it held is there as {by}: it was renamed."
            yield Discrepancy(kind=Deviance.RENAMED, name=by, words=words)
        else:
            words = f"{name} is missing: it was published with the certificate."
            yield Discrepancy(kind=Deviance.MISSING, name=name, words=words)


def _added(name: str, mode: int) -> Discrepancy:
    if stat.S_ISDIR(mode):
        words = f"{name} is a folder that was not published with the certificate: it was added later."
        if name.startswith(".") and name.endswith(disk.WAITING):
            words = (
                f"{name} is a folder that a program left which was cut short, such as a signing. Remove it."
            )
        return Discrepancy(kind=Deviance.FOLDER_ADDED, name=name, words=words)
    what = "link" if stat.S_ISLNK(mode) else "file"
    words = f"{name} is a {what} that was not published with the certificate: it was added later."
    return Discrepancy(kind=Deviance.ADDED, name=name, words=words)


def only_differs(path: Path, published: str) -> Deviance | None:
    """Whether a file would be what was published, but for its line ends or a mark before it."""
    for without_mark in (False, True):
        for ends in ("as they are", "LF", "CRLF"):
            anew = hashlib.sha256()
            for piece in _anew(path, ends, without_mark):
                anew.update(piece)
            if anew.hexdigest() == published:
                return Deviance.MARK if without_mark else Deviance.LINE_ENDS
    return None


def _anew(path: Path, ends: str, without_mark: bool) -> Iterator[bytes]:
    """The content of a file with other line ends, or without a mark; a CR at the end of a piece waits."""
    with path.open("rb") as file:
        if without_mark and file.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
            return
        waiting = b""
        while piece := file.read(_PIECE):
            piece, waiting = waiting + piece, b""
            if piece.endswith(b"\r"):
                piece, waiting = piece[:-1], b"\r"
            if ends != "as they are":
                piece = piece.replace(b"\r\n", b"\n")
            yield piece.replace(b"\n", b"\r\n") if ends == "CRLF" else piece
        yield waiting
