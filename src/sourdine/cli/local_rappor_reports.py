"""What a collector hands to `decode`: reports or counts, in our files or in Google's."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sourdine.cli import show
from sourdine.cli.local_files import read_bytes
from sourdine.cli.local_rappor_params import oracle_of
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.local.counts import Counts
    from sourdine.local.question import Question
    from sourdine.local.rappor.responding import Rows

_LINES = 1 << 16  # lines read, or reports counted, at once
_HEADER = b"client,cohort,"


@dataclass(frozen=True, eq=False)
class Collected:
    """Counts, under the oracle's fingerprint; and all reports, unless some files hold counts only."""

    counts: "Counts"
    rows: "Rows | None"


def collect(question: "Question", paths: Sequence[Path]) -> Collected:
    """Everything that some files hold; a wrong line in any of them stops it all."""
    import numpy as np

    oracle = oracle_of(question)
    total = oracle.tally(np.zeros((0, oracle.width), np.uint8))
    parts: list[Rows] = []
    counted = False
    for path in paths:
        found = _read(question, path)
        if isinstance(found, np.ndarray):
            parts.append(found)
            for start in show.progress(f"counting {path.name}", range(0, len(found), _LINES)):
                total += oracle.tally(found[start : start + _LINES])
        else:
            total += found
            counted = True
    return Collected(total, None if counted else np.concatenate(parts))


def _read(question: "Question", path: Path) -> "Rows | Counts":
    """Reports or counts, by what the file begins with."""
    from sourdine.local.rappor.files import read_counts, read_reports

    raw = read_bytes(path)
    start = raw.lstrip()[: len(_HEADER)]
    oracle = oracle_of(question)
    if start == _HEADER:
        return read_reports(path, oracle).rows
    if path.suffix.lower() == ".csv":
        return read_counts(path, oracle)
    try:
        if start[:1] == b"{":
            return _our_counts(question, raw)
        return _our_reports(question, raw.replace(b"\r\n", b"\n"), path.name)
    except InvalidParameter as problem:
        raise InvalidParameter(f"In {path}: {problem}") from None


def _our_counts(question: "Question", raw: bytes) -> "Counts":
    import numpy as np

    from sourdine.local.counts import Counts

    oracle = oracle_of(question)
    try:
        found = Counts.from_json(json.loads(raw))
    except (ValueError, RecursionError):
        raise InvalidParameter(
            "The counts cannot be read. They are cut short or were changed. Make them anew."
        ) from None
    if found.fingerprint != question.fingerprint:
        raise InvalidParameter(
            "These counts are of reports made with other parameters. Read by these they would mean nothing. "
            "Use the parameters that the reports were made with."
        )
    sums = found.sums
    whole = sums.size == oracle.cohorts * (1 + oracle.bits)
    table = sums.reshape(oracle.cohorts, -1) if whole else np.zeros((1, 2), np.int64)
    if not whole or table[:, 0].sum() != found.reports or np.any((table < 0) | (table > table[:, :1])):
        raise InvalidParameter("The counts do not add up. They are damaged or cut short. Make them anew.")
    return replace(found, fingerprint=oracle.fingerprint)


def _our_reports(question: "Question", raw: bytes, name: str) -> "Rows":
    import numpy as np

    from sourdine.local.wire import line_length, read

    width, oracle = question.oracle.width, oracle_of(question)
    piece = _LINES * line_length(width)
    try:
        parts = [
            oracle.unpack(read(raw[start : start + piece], question.fingerprint, width))
            for start in show.progress(f"reading {name}", range(0, len(raw), piece))
        ]
    except InvalidParameter:
        oracle.unpack(read(raw, question.fingerprint, width))  # raises again, with the right line
        raise
    if not parts:
        raise InvalidParameter("It is empty. Nothing was counted.")
    return np.concatenate(parts)
