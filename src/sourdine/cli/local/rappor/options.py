"""The parameters of RAPPOR on the command line: from a file, from coins, or from what may be revealed."""

import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared.parse import number, read_json
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.local.question import Question
    from sourdine.local.rappor.rappor import BloomOracle

NAME = "words"  # of a question whose file has no place for a name
_OWNER = "local rappor"


@dataclass(frozen=True, kw_only=True)
class NoiseOptions:
    """How words become reports, as it was typed."""

    epsilon: Annotated[str | None, typer.Option(help="What one report may reveal, such as 1.")] = None
    epsilon_infinity: Annotated[
        str | None,
        typer.Option("--epsilon-infinity", help="What all reports on one word may reveal; inf for no limit."),
    ] = None
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Devices report one time only: the permanent answer itself, as in Google's one-time RAPPOR.",
        ),
    ] = False
    fresh: Annotated[
        bool,
        typer.Option(
            "--no-permanent",
            help="One report by the other reading: no permanent answer (f = 0). Every further one costs "
            "again.",
        ),
    ] = False
    bits: Annotated[int, typer.Option(help="Bits of a filter.")] = 128
    hashes: Annotated[int, typer.Option(help="Bits that a word sets.")] = 2
    cohorts: Annotated[int, typer.Option(help="Groups of devices, each with hashes of its own.")] = 16
    f: Annotated[
        str | None, typer.Option("--f", help="Instead of epsilons: noise of the permanent answer.")
    ] = None
    p: Annotated[str | None, typer.Option("--p", help="How often a permanent 0 is reported as 1.")] = None
    q: Annotated[str | None, typer.Option("--q", help="How often a permanent 1 is reported as 1.")] = None

    @property
    def any(self) -> bool:
        """Whether coins or epsilons were given."""
        return (
            self.once
            or self.fresh
            or any(text is not None for text in (self.epsilon, self.epsilon_infinity, self.f, self.p, self.q))
        )

    def oracle(self) -> "BloomOracle":
        """The oracle that they make."""
        coins = (self.f, self.p, self.q)
        if self.fresh:
            return self._without_permanent()
        if self.epsilon is None and self.epsilon_infinity is None:
            return self._by_coins()
        if any(coin is not None for coin in coins):
            raise InvalidParameter(
                "The noise is stated by --f, --p and --q, or else by --epsilon. Both were given."
            )
        return self._by_epsilons()

    def usual(self) -> "BloomOracle":
        """With the noise of the published experiments."""
        return replace(self, f="1/2", p="1/2", q="3/4").oracle()

    def _without_permanent(self) -> "BloomOracle":
        """Reports by the instantaneous answer alone."""
        if self.once or self.f is not None or self.epsilon_infinity is not None:
            raise InvalidParameter(
                "Without a permanent answer, f is 0 and no limit holds for all reports. Give --no-permanent "
                "with --p and --q, or with --epsilon, and leave out --once, --f and --epsilon-infinity."
            )
        if self.epsilon is None:
            return replace(self, fresh=False, f="0").oracle()
        return replace(self, fresh=False, epsilon_infinity="inf").oracle()

    def _by_coins(self) -> "BloomOracle":
        from sourdine.local.rappor import OneTimeRappor, Rappor

        size = {"bits": self.bits, "hashes": self.hashes, "cohorts": self.cohorts}
        if self.once:
            if self.f is None or self.p is not None or self.q is not None:
                raise InvalidParameter("Reports made once need --f or --epsilon, and neither --p nor --q.")
            return OneTimeRappor(**size, f=self._share("f", self.f))
        if self.f is None or self.p is None or self.q is None:
            raise InvalidParameter(
                "The noise is not stated in full. Give --f, --p and --q, or --epsilon with "
                "--epsilon-infinity, or --epsilon with --once."
            )
        f, p, q = (self._share(name, text) for name, text in (("f", self.f), ("p", self.p), ("q", self.q)))
        if p >= q:
            raise InvalidParameter("The noise needs a --q above --p, or reports would tell nothing. Raise q.")
        return Rappor(**size, f=f, p=p, q=q)

    def _by_epsilons(self) -> "BloomOracle":
        from sourdine.local.rappor import OneTimeRappor, Rappor

        size = {"bits": self.bits, "hashes": self.hashes, "cohorts": self.cohorts}
        if self.epsilon is None or self.once == (self.epsilon_infinity is not None):
            raise InvalidParameter(
                "Give --epsilon with --epsilon-infinity, the limit of all reports on one word (inf for "
                "none), or --epsilon with --once."
            )
        one = self._level("epsilon", self.epsilon)
        if self.epsilon_infinity is None:
            return OneTimeRappor.within(epsilon=one, **size)
        endless = self.epsilon_infinity.lower() in ("inf", "infinity", "∞")
        limit = math.inf if endless else self._level("epsilon_infinity", self.epsilon_infinity)
        if limit <= one:
            raise InvalidParameter(
                "The limit --epsilon-infinity of all reports must be above --epsilon, that of one. "
                "Raise it, or use --once if there is one report only."
            )
        return Rappor.within(epsilon=one, epsilon_infinity=limit, **size)

    def _share(self, name: str, text: str) -> Fraction:
        return number(_OWNER, name, text, 0, 1)

    def _level(self, name: str, text: str) -> Fraction:
        return number(_OWNER, name, text, Fraction(1, 1 << 10), 512)


def read_question(path: Path) -> "Question":
    """The question of a specification in JSON, or of a params file of Google's in CSV."""
    from sourdine.local.question import Question
    from sourdine.local.rappor.files import read_params
    from sourdine.local.rappor.rappor import BloomOracle

    if path.suffix.lower() == ".csv":
        # such a file has no format of ours: reports made with it by version 0.1 must go on fitting
        return Question(name=NAME, oracle=read_params(path), format=1)
    question = Question.from_json(read_json(path))
    if not isinstance(question.oracle, BloomOracle):
        raise InvalidParameter(
            f"The specification {path} is not one of words by RAPPOR. "
            "Use 'sourdine local encode' and 'sourdine local estimate' for it."
        )
    return question


def oracle_of(question: "Question") -> "BloomOracle":
    """The oracle of a question about words."""
    from sourdine.local.rappor.rappor import BloomOracle

    assert isinstance(question.oracle, BloomOracle)
    return question.oracle


def write_question(path: Path, question: "Question") -> None:
    """A specification in JSON, or a params file of Google's for a name that ends in .csv."""
    from sourdine.local.rappor.files import write_params

    if path.suffix.lower() == ".csv":
        write_params(path, oracle_of(question))
    else:
        content = json.dumps(question.to_json(), indent=2, ensure_ascii=False)
        disk.write_whole(path, content + "\n")


def costs(oracle: "BloomOracle") -> dict[str, float | None]:
    """What reports reveal, for machines; None where there is no limit."""
    forever = oracle.epsilon_infinity
    return {
        "epsilon_one": oracle.epsilon_one,
        "epsilon_infinity": forever if math.isfinite(forever) else None,
    }


def say_costs(oracle: "BloomOracle") -> str:
    """What reports reveal, in a sentence."""
    one, forever = oracle.epsilon_one, oracle.epsilon_infinity
    if not math.isfinite(forever):
        return f"One report reveals at most epsilon {_up(one)}, and every further report as much again."
    if forever == one:
        return f"A device's one report on a word reveals at most epsilon {_up(one)}."
    return (
        f"One report reveals at most epsilon {_up(one)}, and all reports of a device on one word together "
        f"{_up(forever)}."
    )


def _up(epsilon: float) -> str:
    from sourdine.core.format import shorten_up

    return shorten_up(epsilon, 4)
