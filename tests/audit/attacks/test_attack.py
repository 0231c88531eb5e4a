import pkgutil

import pytest
from scipy.stats import beta

from sourdine.audit import attacks
from sourdine.audit.attacks import ATTACKS, Attack, AttackResult, Outcome
from sourdine.audit.attacks.attack import BETA, percent
from sourdine.testing import SeededBits


def found(*, bare: Outcome, safe: Outcome, chance: float = 0.5, limit: float = 0.6) -> AttackResult:
    return AttackResult(
        name="toy",
        attacked="A toy.",
        goal="right guesses",
        unprotected=bare,
        protected=safe,
        chance=chance,
        guess="a coin",
        limit=limit,
        why="it is so",
        finding="It works",
        lesson="Do not.",
        charts=(),
    )


def out(hits: int, tries: int = 1000) -> Outcome:
    return Outcome(target="toys", hits=hits, tries=tries)


def test_the_least_success_is_that_of_clopper_and_pearson() -> None:
    assert out(900).success == 0.9
    assert out(900).lower == pytest.approx(beta.ppf(BETA, 900, 101))
    assert out(0).lower == 0.0


@pytest.mark.parametrize(
    ("bare", "safe", "succeeds", "stopped"),
    [
        (out(950), out(550), True, True),
        (out(650), out(550), False, True),  # above the limit, but not for sure
        (out(950), out(650), True, True),  # perhaps by chance
        (out(950), out(700), True, False),
        (out(40, 40), out(550), True, True),
        (out(9, 9), out(550), False, True),  # nine of nine say little
    ],
)
def test_verdicts_allow_for_chance(bare: Outcome, safe: Outcome, succeeds: bool, stopped: bool) -> None:
    told = found(bare=bare, safe=safe)
    assert (told.succeeds, told.stopped) == (succeeds, stopped)


def test_a_single_certain_leak_breaks_a_limit_of_zero() -> None:
    assert found(bare=out(500), safe=out(0), chance=0.0, limit=0.0).stopped
    assert not found(bare=out(500), safe=out(1), chance=0.0, limit=0.0).stopped


def test_percentages_never_round_to_certainty() -> None:
    gap = "\N{NO-BREAK SPACE}%"
    shown = {1.0: "100", 0.9999: "99.9", 0.5: "50.0", 0.0005: "0.1", 0.0004: "0.04", 0.0: "0"}
    assert {share: percent(share) for share in shown} == {s: t + gap for s, t in shown.items()}


def test_every_attack_is_listed() -> None:
    modules = {each.name for each in pkgutil.iter_modules(attacks.__path__)}
    assert set(ATTACKS) == modules - {"attack", "own_table", "targets"}
    assert all(isinstance(each, Attack) and each.name == name for name, each in ATTACKS.items())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("name", ATTACKS)
def test_other_people_fall_and_are_protected_alike(name: str, seed: int) -> None:
    told = ATTACKS[name].run(SeededBits(seed))
    assert told.succeeds
    assert told.stopped
