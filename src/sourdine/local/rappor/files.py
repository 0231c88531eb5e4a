"""Files of Google's RAPPOR tools, read and written: params, counts, reports, map and results.

All are CSV. Nothing is read in part: what cannot be read as a whole is refused, by its line.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.text import as_written, inert
from sourdine.local.estimate import Counts
from sourdine.local.rappor.decode.decoding import Candidates, Decoding
from sourdine.local.rappor.device import Life
from sourdine.local.rappor.rappor import BloomOracle, OneTimeRappor, Rappor
from sourdine.local.rappor.responses import Rows

_PARAMS = ["k", "h", "m", "p", "q", "f"]
_REPORTS = ["client", "cohort", "bloom", "prr", "irr"]
_RESULTS = [
    "string",
    "estimate",
    "std_error",
    "proportion",
    "prop_std_error",
    "prop_low_95",
    "prop_high_95",
]
_MOST_DIGITS = 400


def read_params(path: Path) -> BloomOracle:
    """The oracle of a params file; p = 0 and q = 1 mean that reports are made once."""
    lines = _lines(path)
    if len(lines) != 2 or lines[0] != _PARAMS or len(lines[1]) != len(_PARAMS):
        raise InvalidParameter(
            f"The params in '{path.name}' cannot be read. They are a line 'k,h,m,p,q,f' and a line of six "
            "numbers. Write them with 'write_params'."
        )
    try:
        k, h, m = (int(text) for text in lines[1][:3])
        p, q, f = (Fraction(text) for text in lines[1][3:])
    except (ValueError, ZeroDivisionError):
        raise InvalidParameter(
            f"The params in '{path.name}' hold something that is no number. They are three whole numbers and "
            "three decimals."
        ) from None
    if p == 0 and q == 1:
        return OneTimeRappor(bits=k, hashes=h, cohorts=m, f=f)
    return Rappor(bits=k, hashes=h, cohorts=m, f=f, p=p, q=q)


def write_params(path: Path, oracle: BloomOracle) -> None:
    """The params of an oracle, with every digit of its probabilities."""
    coins = oracle.coins
    numbers = [oracle.bits, oracle.hashes, oracle.cohorts]
    shares = [_decimal(name, share) for name, share in (("p", coins.p), ("q", coins.q), ("f", coins.f))]
    _write(path, [_PARAMS, [*map(str, numbers), *shares]])


def read_counts(path: Path, oracle: BloomOracle) -> Counts:
    """The counts of a file: for each cohort a line of N and k sums, bit 0 first."""
    lines = _lines(path)
    if len(lines) != oracle.cohorts:
        raise InvalidParameter(
            f"The counts in '{path.name}' have {len(lines)} lines for {oracle.cohorts} cohorts. They are cut "
            "short, or of other parameters. Nothing was read: make them again."
        )
    rows = [_whole_numbers(path, "counts", i, line, oracle.bits + 1) for i, line in enumerate(lines, 1)]
    table = np.array(rows, np.int64)
    wrong = np.flatnonzero(np.any(table[:, 1:] > table[:, :1], axis=1))
    if wrong.size:
        raise InvalidParameter(
            f"Line {int(wrong[0]) + 1} of the counts in '{path.name}' has more ones than reports. They are "
            "damaged, or bits stand before their number. Make them again."
        )
    return Counts(oracle.fingerprint, int(table[:, 0].sum()), table.ravel())


def write_counts(path: Path, oracle: BloomOracle, counts: Counts) -> None:
    """Counts as a file."""
    _write(path, oracle.table(counts).tolist())


class Reports(NamedTuple):
    """Who reported, and the packed reports."""

    clients: tuple[str, ...]
    rows: Rows


def read_reports(path: Path, oracle: BloomOracle) -> Reports:
    """The clients and what they sent; the columns that tell the truth, 'bloom' and 'prr', are not read."""
    lines = _lines(path)
    if not lines or lines[0] != _REPORTS:
        raise InvalidParameter(
            f"The reports in '{path.name}' do not begin with the line '{','.join(_REPORTS)}'. Add it."
        )
    strings = bytearray()
    cohorts = []
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(_REPORTS) or not line[1].isdecimal() or set(line[4]) - {"0", "1"}:
            raise InvalidParameter(
                f"Line {number} of the reports in '{path.name}' is damaged or cut short. Nothing was read: "
                "get the file again, or take the line out."
            )
        if len(line[4]) != oracle.bits or int(line[1]) >= oracle.cohorts:
            raise InvalidParameter(
                f"Line {number} of the reports in '{path.name}' was made with other parameters: it has "
                f"{len(line[4])} bits in cohort {line[1]}, for {oracle.bits} bits in {oracle.cohorts} "
                "cohorts. Nothing was read."
            )
        strings += line[4].encode()
        cohorts.append(int(line[1]))
    bits = np.frombuffer(bytes(strings), np.uint8).reshape(-1, oracle.bits)[:, ::-1] & 1
    rows = oracle.with_cohorts(np.packbits(bits, axis=1), np.array(cohorts, np.int64))
    return Reports(tuple(line[0] for line in lines[1:]), rows)


def write_reports(
    path: Path, oracle: BloomOracle, clients: Sequence[str], rows: Rows, *, lives: Sequence[Life] = ()
) -> None:
    """Reports as a file. The columns 'bloom' and 'prr' stay empty, unless the lives of simulated reports are
    given: they hold the truth.
    """
    cohorts, packed = oracle.split(oracle.unpack(oracle.pack(rows)))
    if len(clients) != len(packed) or (lives and len(lives) != len(packed)):
        raise InvalidParameter(
            f"There are {len(packed)} reports and {len(clients)} clients. Pass one a report."
        )
    sent = _bit_strings(np.unpackbits(packed, axis=1, count=oracle.bits))
    hidden = [("", "")] * len(packed)
    if lives:
        stages = (np.array([life.filter for life in lives]), np.array([life.permanent for life in lives]))
        hidden = list(zip(*(_bit_strings(stage.view(np.uint8)) for stage in stages), strict=True))
    lines = zip(clients, cohorts.tolist(), hidden, sent, strict=True)
    _write(path, [_REPORTS, *([client, cohort, *truth, irr] for client, cohort, truth, irr in lines)])


def read_map(path: Path, oracle: BloomOracle) -> Candidates:
    """The candidates of a map: a word, and cohort k + bit + 1 for each cohort and hash."""
    lines = _lines(path)
    width = oracle.cohorts * oracle.hashes
    rows = [_whole_numbers(path, "map", i, line[1:], width) for i, line in enumerate(lines, 1)]
    table = np.array(rows, np.int64).reshape(len(lines), oracle.cohorts, oracle.hashes)
    table = table - 1 - oracle.bits * np.arange(oracle.cohorts)[:, None]
    wrong = np.flatnonzero(np.any((table < 0) | (table >= oracle.bits), axis=(1, 2)))
    if wrong.size:
        raise InvalidParameter(
            f"The candidate on line {int(wrong[0]) + 1} of the map '{path.name}' has a bit outside its "
            "cohort. The map was made with other parameters. Make it anew."
        )
    return Candidates(tuple(line[0] for line in lines), table, oracle.bits)


def write_map(path: Path, candidates: Candidates) -> None:
    """Candidates as a map, with the ends of line that Google's tools write."""
    cohorts = candidates.positions.shape[1]
    table = candidates.positions + 1 + candidates.bits * np.arange(cohorts)[:, None]
    rows = table.reshape(len(candidates.words), -1).tolist()
    lines = ([word, *row] for word, row in zip(candidates.words, rows, strict=True))
    _write(path, lines, end="\r\n")


@dataclass(frozen=True)
class ResultLine:
    """One line of a results file."""

    string: str
    estimate: float
    std_error: float
    proportion: float
    prop_std_error: float
    prop_low_95: float
    prop_high_95: float


def results(decoding: Decoding) -> list[ResultLine]:
    """The words that were found, the most frequent first."""
    if decoding.terms.confidence != 0.95:
        raise InvalidParameter("Results have intervals at 95 %. Decode with a confidence of 0.95.")
    order = np.argsort(-decoding.shares, kind="stable")
    n = decoding.reports
    return [
        ResultLine(
            decoding.words[i],
            float(decoding.shares[i] * n),
            float(decoding.errors[i] * n),
            float(decoding.shares[i]),
            float(decoding.errors[i]),
            float(decoding.lower[i]),
            float(decoding.upper[i]),
        )
        for i in order
        if decoding.detected[i]
    ]


def write_results(path: Path, decoding: Decoding) -> None:
    """The words that were found, as a file; a spreadsheet takes none of them for a formula."""
    lines = ([inert(getattr(result, name)) for name in _RESULTS] for result in results(decoding))
    _write(path, [_RESULTS, *lines])


def read_results(path: Path) -> list[ResultLine]:
    """The lines of a results file."""
    lines = _lines(path)
    if not lines or lines[0] != _RESULTS:
        raise InvalidParameter(
            f"The results in '{path.name}' do not begin with the line '{','.join(_RESULTS)}'. Add it."
        )
    results = []
    for number, line in enumerate(lines[1:], 2):
        try:
            word, *numbers = line
            results.append(ResultLine(as_written(word), *(float(text) for text in numbers)))
        except (TypeError, ValueError):
            raise InvalidParameter(
                f"Line {number} of the results in '{path.name}' is damaged or cut short. Nothing was read."
            ) from None
    return results


def _bit_strings(bits: NDArray[np.uint8]) -> list[str]:
    """Rows of bits as text, the last bit first."""
    count, width = bits.shape
    text = (bits[:, ::-1] + np.uint8(48)).tobytes().decode()
    return [text[i * width : (i + 1) * width] for i in range(count)]


def _decimal(name: str, share: Fraction) -> str:
    """A fraction with all its decimals, as long as they end."""
    places = 0
    while (share * 10**places).denominator != 1:
        places += 1
        if places > _MOST_DIGITS:
            raise InvalidParameter(
                f"The '{name}' of {share} has decimals without end, and a params file holds decimals. Choose "
                "one such as 1/4, or keep the parameters as JSON."
            )
    digits = str(int(share * 10**places)).rjust(places + 1, "0")
    return f"{digits[: len(digits) - places]}.{digits[len(digits) - places :]}" if places else digits


def _whole_numbers(path: Path, what: str, number: int, texts: Sequence[str], count: int) -> list[int]:
    if len(texts) != count or not all(text.isdecimal() and len(text) < 19 for text in texts):
        raise InvalidParameter(
            f"Line {number} of the {what} in '{path.name}' is damaged or cut short: it needs {count} whole "
            "numbers. Nothing was read: make the file anew with these parameters."
        )
    return [int(text) for text in texts]


def _lines(path: Path) -> list[list[str]]:
    """The lines that hold something."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            return [line for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error):
        raise InvalidParameter(f"The file '{path.name}' is no CSV in UTF-8. Nothing was read.") from None
    except OSError as problem:
        raise InvalidParameter(f"The file '{path.name}' cannot be read: {problem.strerror}.") from None


def _write(path: Path, lines: Iterable[Sequence[Any]], end: str = "\n") -> None:
    """The whole file or nothing: a file that was there stays until the new one is complete."""
    with disk.whole_file(path) as place, place.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator=end).writerows(lines)
