"""`sourdine local rappor simulate`: which words would be found, on made-up people."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.local.rappor.decode import (
    DECODERS,
    Collected,
    Correct,
    Level,
    check_decoder,
    decode_by,
    read_terms,
)
from sourdine.cli.local.rappor.options import NoiseOptions, costs, say_costs
from sourdine.cli.shared import show
from sourdine.cli.shared.option_groups import with_groups
from sourdine.cli.shared.parse import AsJson, Seed, bits_of
from sourdine.core import check
from sourdine.core.format import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sourdine.core.random.bits import Bits
    from sourdine.local.estimate import Floats
    from sourdine.local.rappor.decode import Decoding
    from sourdine.local.rappor.rappor import BloomOracle

_CHUNK = 1 << 16
FILES = PARAMS, COUNTS, MAP, RESULTS, TRUE = "params.csv", "counts.csv", "map.csv", "results.csv", "true.csv"


@dataclass(frozen=True)
class _Score:
    """How a decoder did."""

    decoder: str
    true: int
    false: int
    decoding: "Decoding"
    error: float


@with_groups
def simulate(
    *,
    people: Annotated[int, typer.Option(help="How many people report.")] = 100_000,
    words: Annotated[int, typer.Option(help="How many different words they have.")] = 100,
    absent: Annotated[int, typer.Option(help="How many candidates nobody has.")] = 100,
    law: Annotated[
        str, typer.Option(help="How common words are: exponential, zipf, geometric or uniform.")
    ] = "exponential",
    decoder: Annotated[
        list[str] | None,
        typer.Option(
            help=f"One of {', '.join(DECODERS)}; may be given several times. Without: all that read counts."
        ),
    ] = None,
    level: Level = 0.05,
    correction: Correct = "bh",
    noise: NoiseOptions,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A folder for Google's params, counts, map and results."),
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Make up people, report for each, and compare what is found with the truth. Nobody's data is touched.

    Without noise given: f 0.5, p 0.5 and q 0.75.

    Examples: sourdine local rappor simulate --people 1000000
    · sourdine local rappor simulate --once --epsilon 2 --decoder em --decoder least-squares
    """
    import numpy as np

    from sourdine.local.rappor.decode import Candidates
    from sourdine.local.simulation import population

    owner = "local rappor simulate"
    oracle = noise.oracle() if noise.any else noise.usual()
    people = check.integer(owner, "people", people, 1, 1 << 28)
    words = check.integer(owner, "words", words, 1, 1 << 16)
    absent = check.integer(owner, "absent", absent, 0, 1 << 16)
    terms = read_terms(owner, level, correction)
    names = list(dict.fromkeys(decoder or DECODERS[:-1]))
    for name in names:
        check_decoder(owner, name)
    if output is not None:
        show.check_folder(output)
        show.refuse_existing(output / name for name in FILES)
    source = bits_of(owner, seed)
    counts = population(law, words, people)
    candidates = Candidates.of(oracle, [f"v{i}" for i in range(1, words + absent + 1)])
    truth = np.append(counts, np.zeros(absent, np.int64)) / people
    collected = _collect(oracle, candidates.words, counts, keep="em" in names, source=source)
    scores = []
    for name in show.progress("decoding", names):
        decoding = decode_by(name, oracle, collected, candidates, terms)
        right = int(decoding.detected[:words].sum())
        error = float(np.sqrt(np.mean((decoding.shares - truth) ** 2)))
        scores.append(_Score(name, right, int(decoding.detected.sum()) - right, decoding, error))
    if output is not None:
        _write(output, oracle, collected, truth, scores[0].decoding)
    if as_json:
        document = {"people": people, "words": words, "absent": absent, "law": law, **costs(oracle)}
        document |= {"correction": str(terms.correction), "level": level}
        show.document({**document, "decoders": [_plain(score) for score in scores]})
        return
    columns = ("decoder", "found", "of them false", "share found", "error of shares")
    show.table(columns, [_row(score) for score in scores], numbers=columns[1:])
    show.say(
        f"{people:,} made-up people with {counted(words, 'word')} by a law that is {law}, and "
        f"{counted(absent, 'candidate')} that nobody has. {terms.correction} at {100 * level:g} %. 'Share "
        f"found' is how much of all reports the found words make up. {say_costs(oracle)}"
    )
    if output is not None:
        show.line(f"The files are in {output}; the results are those of {scores[0].decoder}.")


def _collect(
    oracle: "BloomOracle",
    words: tuple[str, ...],
    counts: "NDArray[np.int64]",
    *,
    keep: bool,
    source: "Bits",
) -> Collected:
    """Reports of made-up people, counted; and kept where a decoder needs them."""
    import numpy as np

    from sourdine.local.rappor.rappor import Filters

    codes = np.repeat(np.arange(len(counts)), counts)
    filters = Filters.of(oracle, words[: len(counts)])
    total = oracle.tally(np.zeros((0, oracle.width), np.uint8))
    parts = []
    for start in show.progress("making reports", range(0, len(codes), _CHUNK)):
        rows = filters.reports(codes[start : start + _CHUNK], source)
        total += oracle.tally(rows)
        if keep:
            parts.append(rows)
    return Collected(total, np.concatenate(parts) if keep else None)


def _write(
    folder: Path,
    oracle: "BloomOracle",
    collected: Collected,
    truth: "Floats",
    decoding: "Decoding",
) -> None:
    from sourdine.local.rappor.decode import Candidates
    from sourdine.local.rappor.files import write_counts, write_map, write_params, write_results

    write_params(folder / PARAMS, oracle)
    write_counts(folder / COUNTS, oracle, collected.counts)
    write_map(folder / MAP, Candidates.of(oracle, decoding.words))
    write_results(folder / RESULTS, decoding)
    lines = [f"{word},{share!r}" for word, share in zip(decoding.words, truth.tolist(), strict=True)]
    show.keep("\n".join(["string,proportion", *lines]) + "\n", folder / TRUE)


def _plain(score: _Score) -> dict[str, object]:
    return {
        "decoder": score.decoder,
        "true": score.true,
        "false": score.false,
        "mass": score.decoding.mass,
        "error": score.error,
    }


def _row(score: _Score) -> tuple[str, ...]:
    words = score.true + score.false
    mass = f"{100 * score.decoding.mass:.0f} %"
    return score.decoder, f"{words:,}", f"{score.false:,}", mass, f"{100 * score.error:.2g} %"
