"""How many people hold a category, from votes for and against it among the reports of its block.

A report falls into the block of the category more often if the person's category is in it (`own`) than if
not (`other`), and votes for or against the category there. It leans only for those who hold it. How many hold
other categories of the block is not known, and must not spoil the interval.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sourdine.local.intervals.inversion import Bools, Inversion, PeopleRange, coins, rounded, within
from sourdine.local.intervals.sums import Ints, Sums, SumStep

_FOR_THE_BLOCK = 0.1  # of the error, for how many people the block holds
_FOR_THE_VOTES = 0.75  # of the error, where those who voted are counted first


_GROUPS = (1, 2, 4, 8, 16)  # of people whose sums are looked at
_STRICT = 1e-9  # by how much more than enough, for the rounding of floats


@dataclass(frozen=True)
class Votes:
    """How often a report falls into a category's block, and how the votes in it lean.

    `own` is for a category of the block, `other` for one of another block, and `lean` is how much more often
    the report votes for the true category than against it. Between others it does not lean at all.
    """

    own: float
    other: float
    lean: float

    @property
    def steps(self) -> tuple[SumStep, SumStep, SumStep]:
        """A vote of one who holds the category, of one with another of the block, and of all others."""
        up, down = (self.own + self.lean) / 2, (self.own - self.lean) / 2
        return SumStep(up, down), SumStep(self.own / 2, self.own / 2), SumStep(self.other / 2, self.other / 2)

    def log_concave(self, people: int) -> bool:
        """Whether every sum of the steps of so many people, or more, is known to be log-concave.

        It is if all sums of N to 2N - 1 steps are, for some N up to that: more people can be parted into
        such groups, and sums of log-concave ones are log-concave.
        """
        return any(_all_log_concave(self.steps, group) for group in _GROUPS if group <= people)

    def people(self, signs: Ints, totals: Ints, alone: Bools, reports: int, confidence: float) -> PeopleRange:
        """How many hold each category, by the votes for it less those against it, and all in its block.

        `alone` tells which categories have a block of their own.
        """
        error = 1 - confidence
        out = np.empty((2, len(signs)), np.int64)
        shared = self._summed if self.log_concave(reports - 1) else self._counted
        for which, method in ((alone, self._alone), (~alone, shared)):
            if which.any():
                out[:, which] = method(signs[which], totals[which], reports, error)
        return within(out[0], out[1], reports, signs.shape)

    def people_between(
        self, fewest: Ints, most: Ints, alone: Bools, reports: int, confidence: float
    ) -> PeopleRange | None:
        """How many hold each category, by limits on its votes and no knowledge of its block.

        None where the sums are not known to be log-concave, so that their tails cannot be compared.
        """
        if not self.log_concave(reports - 1):
            return None
        out = np.empty((2, len(fewest)), np.int64)
        for which, block in ((alone, 0), (~alone, reports)):
            largest = np.full(int(which.sum()), block, np.int64)
            for side, signs in enumerate((fewest, most)):
                within_reach = np.clip(signs[which], -reports, reports)
                ends = self._inverted(within_reach, largest, reports, 1 - confidence, unsure=bool(block))
                out[side, which] = ends[side]
        return within(out[0], out[1], reports, fewest.shape)

    def _alone(self, signs: Ints, totals: Ints, reports: int, error: float) -> tuple[Ints, Ints]:
        """Nobody else is in the block."""
        return self._inverted(signs, np.zeros_like(signs), reports, error, unsure=False)

    def _summed(self, signs: Ints, totals: Ints, reports: int, error: float) -> tuple[Ints, Ints]:
        """By an upper limit of all people of the block, at a part of the error (Berger, Boos 1994)."""
        blocks, back = np.unique(totals, return_inverse=True)
        limit = coins(self.own, self.other, np.full(len(blocks), reports), 2 * _FOR_THE_BLOCK * error)
        largest = np.maximum(limit.upper(blocks), 0)[back]
        return self._inverted(signs, largest, reports, (1 - _FOR_THE_BLOCK) * error, unsure=True)

    def _inverted(
        self, signs: Ints, largest: Ints, reports: int, error: float, *, unsure: bool
    ) -> tuple[Ints, Ints]:
        limits = []
        for side, totals in enumerate(rounded(signs, reports * self.other)):
            rows, back = np.unique(np.stack([totals, largest], axis=1), axis=0, return_inverse=True)
            within_block = rows[:, 1]

            def step_counts(at: Ints, m: Ints, within_block: Ints = within_block) -> Ints:
                beside = np.maximum(within_block[at] - m, 0)
                return np.stack([m, beside, reports - m - beside], axis=1)

            everyone = np.full(len(rows), reports)
            exact = Inversion(Sums(self.steps), step_counts, everyone, error / 2, unsure)
            ends = exact.lower(rows[:, 0]) if side == 0 else exact.upper(rows[:, 0])
            limits.append(ends[back.reshape(-1)])
        return limits[0], limits[1]

    def _counted(self, signs: Ints, totals: Ints, reports: int, error: float) -> tuple[Ints, Ints]:
        """First how many reports in the block are of people with the category, and then how many they are.

        Given those in the block, a vote is for the category with probability (own + lean)/(2 own) from who
        holds it and with 1/2 from others, whoever they are.
        """
        rows, back = np.unique(np.stack([signs, totals], axis=1), axis=0, return_inverse=True)
        for_it, voting = (rows[:, 0] + rows[:, 1]) // 2, rows[:, 1]
        voters = coins((self.own + self.lean) / (2 * self.own), 0.5, voting, _FOR_THE_VOTES * error)
        fewest, most = voters.lower(for_it), voters.upper(for_it)
        everyone = np.full(len(rows), reports)
        people = coins(self.own, 0.0, everyone, (1 - _FOR_THE_VOTES) * error)
        lower = np.where(fewest > voting, reports + 1, people.lower(np.minimum(fewest, voting)))
        upper = np.where(most < 0, -1, people.upper(np.maximum(most, 0)))
        return lower[back.reshape(-1)], upper[back.reshape(-1)]


@lru_cache(maxsize=256)
def _all_log_concave(steps: tuple[SumStep, ...], group: int) -> bool:
    """Whether all sums of `group` to 2 group - 1 steps of three kinds are log-concave, with a margin."""
    powers = []
    for step in steps:
        kind = [np.ones(1)]
        for _ in range(2 * group - 1):
            kind.append(np.convolve(kind[-1], [step.down, 1 - step.up - step.down, step.up]))
        powers.append(kind)
    for total in range(group, 2 * group):
        for first in range(total + 1):
            for second in range(total - first + 1):
                law = np.convolve(powers[0][first], powers[1][second])
                law = np.convolve(law, powers[2][total - first - second])
                if np.any(law[1:-1] ** 2 < (1 + _STRICT) * law[:-2] * law[2:]):
                    return False
    return True
