"""`sourdine local rappor decode`: which words are behind many reports, and how many of each.

It takes reports or counts, in Sourdine's files or in Google's.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.local.estimate import (
    apart_document,
    not_counted,
    read_bytes,
    refuse_twice,
    tell_apart,
)
from sourdine.cli.local.rappor.options import costs, oracle_of, read_question, say_costs
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, lines_of
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted

if TYPE_CHECKING:
    from sourdine.local.estimate import Counts
    from sourdine.local.question import Question
    from sourdine.local.rappor.decode import Candidates, Decoding, DecodingTerms
    from sourdine.local.rappor.rappor import BloomOracle
    from sourdine.local.rappor.responses import Rows
    from sourdine.local.report_files import FileCounts

_LINES = 1 << 16  # reports counted at once
_HEADER = b"client,cohort,"


@dataclass(frozen=True, eq=False)
class Collected:
    """Counts, under the oracle's fingerprint; and all reports, unless some files hold counts only."""

    counts: "Counts"
    rows: "Rows | None"
    files: "FileCounts | None" = None
    """Of files of lines, what was set apart and why."""


def collect(question: "Question", paths: Sequence[Path]) -> Collected:
    """Everything that some files hold; lines that are no reports are set apart, and the others counted."""
    import numpy as np

    from sourdine.local.report_files import count_files

    oracle = oracle_of(question)
    total = oracle.tally(np.zeros((0, oracle.width), np.uint8))
    parts: list[Rows] = []
    counted = False
    ours = [path for path in paths if _holds_lines(path)]
    files = count_files(question, ours, parts.append)
    total += replace(files.counts, fingerprint=oracle.fingerprint)
    if ours and not files.counts.reports:
        why = "; ".join(not_counted(files)) or "the files are empty"
        raise InvalidParameter(f"No report was counted: {why}. Check the files.")
    for path in (each for each in paths if each not in ours):
        part = _read(question, path)
        if isinstance(part, np.ndarray):
            parts.append(part)
            for start in show.progress(f"counting {path.name}", range(0, len(part), _LINES)):
                total += oracle.tally(part[start : start + _LINES])
        else:
            total += part
            counted = True
    return Collected(total, None if counted else np.concatenate(parts), files)


def _holds_lines(path: Path) -> bool:
    """Whether a file has lines of ours, neither counts nor a table of Google's."""
    start = read_bytes(path, 64).lstrip()[: len(_HEADER)]
    return start != _HEADER and path.suffix.lower() != ".csv" and start[:1] != b"{"


def _read(question: "Question", path: Path) -> "Rows | Counts":
    """Google's reports or counts, or ours, by what the file begins with."""
    from sourdine.local.rappor.files import read_counts, read_reports

    raw = read_bytes(path)
    start = raw.lstrip()[: len(_HEADER)]
    oracle = oracle_of(question)
    if start == _HEADER:
        return read_reports(path, oracle).rows
    if path.suffix.lower() == ".csv":
        return read_counts(path, oracle)
    try:
        return _our_counts(question, raw)
    except InvalidParameter as problem:
        raise InvalidParameter(f"In {path}: {problem}") from None


def _our_counts(question: "Question", raw: bytes) -> "Counts":
    import numpy as np

    from sourdine.local.estimate import Counts

    oracle = oracle_of(question)
    try:
        counts = Counts.from_json(json.loads(raw))
    except (ValueError, RecursionError):
        raise InvalidParameter(
            "The counts cannot be read. They are cut short or were changed. Make them again."
        ) from None
    if counts.fingerprint != question.fingerprint:
        raise InvalidParameter(
            "These counts are of reports made with other parameters. Read by these they would mean nothing. "
            "Use the parameters that the reports were made with."
        )
    sums = counts.sums
    whole = sums.size == oracle.cohorts * (1 + oracle.bits)
    table = sums.reshape(oracle.cohorts, -1) if whole else np.zeros((1, 2), np.int64)
    if not whole or table[:, 0].sum() != counts.reports or np.any((table < 0) | (table > table[:, :1])):
        raise InvalidParameter("The counts do not add up. They are damaged or cut short. Make them again.")
    return replace(counts, fingerprint=oracle.fingerprint)


DECODERS = ("least-squares", "lasso", "non-negative", "em")
CORRECTIONS = {"bh": "Benjamini-Hochberg", "bonferroni": "Bonferroni"}
Level = Annotated[float, typer.Option(help="The false-discovery rate, or the level of Bonferroni.")]
Correct = Annotated[
    str,
    typer.Option(help="Over many candidates: bh (Benjamini-Hochberg) or bonferroni."),
]
_MOST_ROWS = 60


def decode(
    params: Annotated[
        Path, typer.Argument(help="The parameters: a specification (.json), or Google's params (.csv).")
    ],
    reports: Annotated[list[Path], typer.Argument(help="Files of reports or of counts, ours or Google's.")],
    *,
    candidates: Annotated[
        Path | None, typer.Option(help="The words to look for, one per line. With --map: some of its words.")
    ] = None,
    map_file: Annotated[
        Path | None, typer.Option("--map", help="Google's map: words with the bits that they set.")
    ] = None,
    decoder: Annotated[str, typer.Option(help=f"One of {', '.join(DECODERS)}.")] = "least-squares",
    level: Level = 0.05,
    correction: Correct = "bh",
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    results: Annotated[
        Path | None, typer.Option(help="Write the words that were found here, as Google's results.")
    ] = None,
    counts: Annotated[
        Path | None, typer.Option(help="Write the counts here: JSON, or Google's for a name in .csv.")
    ] = None,
    keep_map: Annotated[
        Path | None, typer.Option(help="Write the map of the candidates here, as Google's tools read it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read words out of reports: only those on the list of candidates can be found.

    Decoding costs no privacy. Any wrong line stops it all, and then nothing is written.

    Examples: sourdine local rappor decode pages.json reports.txt --candidates words.txt
    · sourdine local rappor decode params.csv counts.csv --map map.csv --decoder lasso --results results.csv
    """
    terms = read_terms("local rappor decode", level, correction, confidence)
    check_decoder("local rappor decode", decoder)
    if results is not None and terms.confidence != 0.95:
        raise InvalidParameter("Google's results have intervals at 95 %. Leave --confidence out.")
    for place in (results, counts, keep_map):
        show.check_place(place)
    show.refuse_existing((results, counts, keep_map))
    refuse_twice(reports)
    question = read_question(params)
    oracle = oracle_of(question)
    listed = _candidates(oracle, candidates, map_file)
    collected = collect(question, reports)
    decoding = decode_by(decoder, oracle, collected, listed, terms)
    _keep(question, collected, listed, decoding, results=results, counts=counts, keep_map=keep_map)
    if as_json:
        apart = {} if collected.files is None else apart_document(collected.files)
        show.document(_document(question, decoding) | apart)
    else:
        _print(oracle, decoding)
        if collected.files is not None:
            tell_apart(collected.files)


def read_terms(owner: str, level: float, correction: str, confidence: float = 0.95) -> "DecodingTerms":
    """How sure a word must be to be called found."""
    from sourdine.local.rappor.decode import Correction, DecodingTerms

    if not 0 < level < 1:
        raise check.fail(owner, "level", "lie between 0 and 1", level)
    if correction not in CORRECTIONS:
        raise check.fail(owner, "correction", f"be one of {', '.join(CORRECTIONS)}", correction)
    return DecodingTerms(
        level=level,
        correction=Correction(CORRECTIONS[correction]),
        confidence=check.confidence(owner, confidence),
    )


def decode_by(
    name: str, oracle: "BloomOracle", collected: Collected, listed: "Candidates", terms: "DecodingTerms"
) -> "Decoding":
    """What a decoder finds."""
    from sourdine.local.rappor.decode import (
        Evidence,
        decode_by_expectation,
        decode_by_lasso,
        decode_by_least_squares,
        decode_nonnegative,
    )

    if name == "em":
        if collected.rows is None:
            raise InvalidParameter(
                "The decoder em needs whole reports: counts have forgotten which bits came together. "
                "Give the reports, or choose another decoder."
            )
        return decode_by_expectation(oracle, collected.rows, listed, terms=terms)
    evidence = Evidence.of(oracle, collected.counts)
    if name == "lasso":
        return decode_by_lasso(evidence, listed, terms=terms)
    if name == "non-negative":
        return decode_nonnegative(evidence, listed, terms=terms)
    return decode_by_least_squares(evidence, listed, terms=terms)


def check_decoder(owner: str, name: str) -> None:
    """Refuse a decoder that there is not."""
    if name not in DECODERS:
        raise check.fail(owner, "decoder", f"be one of {', '.join(DECODERS)}", name)


def _candidates(oracle: "BloomOracle", words: Path | None, map_file: Path | None) -> "Candidates":
    from sourdine.local.rappor.decode import Candidates
    from sourdine.local.rappor.files import read_map

    if map_file is None:
        if words is None:
            raise InvalidParameter(
                "There is nothing to look for. Give the words with --candidates, or a map with --map."
            )
        return Candidates.of(oracle, lines_of(words))
    mapped = read_map(map_file, oracle)
    return mapped if words is None else mapped.choose(lines_of(words))


def _keep(
    question: "Question",
    collected: Collected,
    listed: "Candidates",
    decoding: "Decoding",
    *,
    results: Path | None,
    counts: Path | None,
    keep_map: Path | None,
) -> None:
    from sourdine.local.rappor.files import write_counts, write_map, write_results

    if counts is not None and counts.suffix.lower() == ".csv":
        write_counts(counts, oracle_of(question), collected.counts)
    elif counts is not None:
        named = replace(collected.counts, fingerprint=question.fingerprint)
        show.keep(json.dumps(named.to_json()) + "\n", counts)
    if keep_map is not None:
        write_map(keep_map, listed)
    if results is not None:
        write_results(results, decoding)


def _document(question: "Question", decoding: "Decoding") -> dict[str, object]:
    import numpy as np

    oracle = oracle_of(question)
    return {
        "question": question.name,
        "specification": question.fingerprint,
        "reports": decoding.reports,
        **costs(oracle),
        "decoder": decoding.method,
        "correction": str(decoding.terms.correction),
        "level": decoding.terms.level,
        "confidence": decoding.terms.confidence,
        "mass": decoding.mass,
        "unlisted": decoding.unlisted,
        "words": [
            {
                "word": decoding.words[i],
                "found": bool(decoding.detected[i]),
                "share": float(decoding.shares[i]),
                "count": float(decoding.counts[i]),
                "standard_error": _finite(decoding.errors[i]),
                "lower": _finite(decoding.lower[i]),
                "upper": _finite(decoding.upper[i]),
                "p_value": float(decoding.p_values[i]),
            }
            for i in np.argsort(-decoding.shares, kind="stable")
        ],
    }


def _finite(number: float) -> float | None:
    """A number for machines; a word that LASSO did not take has no error."""
    return float(number) if math.isfinite(number) else None


def _print(oracle: "BloomOracle", decoding: "Decoding") -> None:
    import numpy as np

    shown = [i for i in np.argsort(-decoding.shares, kind="stable") if decoding.detected[i]]
    percent = f"{100 * decoding.terms.confidence:g} % interval"
    columns = ("word", "reports", "share", percent, "p-value")
    show.table(
        columns,
        [
            (
                show.one_line(decoding.words[i]),
                f"{decoding.counts[i]:,.0f}",
                f"{100 * decoding.shares[i]:.2f} %",
                f"{100 * decoding.lower[i]:.2f} to {100 * decoding.upper[i]:.2f} %",
                f"{decoding.p_values[i]:.1e}",
            )
            for i in shown[:_MOST_ROWS]
        ],
        numbers=columns[1:],
    )
    if len(shown) > _MOST_ROWS:
        show.line(f"and {len(shown) - _MOST_ROWS:,} more; --json shows them all.")
    noisy = " (noise carries the sum past 100 %)" if decoding.mass > 1 else ""
    show.say(
        f"{len(shown):,} of {counted(len(decoding.words), 'candidate')} found in "
        f"{counted(decoding.reports, 'report')} by "
        f"{decoding.method} ({decoding.terms.correction}, {100 * decoding.terms.level:g} %). They make up "
        f"{100 * decoding.mass:.0f} % of the reports{noisy}. {_say_unlisted(decoding.unlisted)} "
        f"{say_costs(oracle)}"
    )


def _say_unlisted(share: float) -> str:
    """How many reports are of other words; more than all of them there cannot be."""
    if share > 1:
        return (
            "How many are of words that are not listed cannot be told: there are too few reports, or they "
            "were made with other parameters than these, and then nothing here is right."
        )
    return f"About {100 * max(0.0, share):.0f} % are of words that are not listed."
