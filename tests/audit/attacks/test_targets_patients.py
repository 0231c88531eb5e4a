from collections import Counter

from sourdine.audit.attacks.targets import HIERARCHIES, ILLNESSES, OUTBREAK, QUASI, draw_patients
from sourdine.testing import SeededBits


def test_the_same_bits_give_the_same_patients() -> None:
    first, again, other = (draw_patients(50, SeededBits(seed)) for seed in (1, 1, 2))
    assert {n: c.tolist() for n, c in first.columns.items()} == {
        n: c.tolist() for n, c in again.columns.items()
    }
    assert first.born.tolist() != other.born.tolist()


def test_columns_fit_their_hierarchies() -> None:
    people = draw_patients(2000, SeededBits(1))
    assert set(QUASI) == set(HIERARCHIES)
    assert {len(day) for day in people.born.tolist()} == {10}
    assert {len(code) for code in people.postcode.tolist()} == {5}
    assert set(people.diagnosis.tolist()) == set(ILLNESSES)


def test_the_outbreak_gathers_in_towns_and_decades() -> None:
    people = draw_patients(20_000, SeededBits(1))
    cells = [
        (code[:3], day[:3]) for code, day in zip(people.postcode.tolist(), people.born.tolist(), strict=True)
    ]
    size = Counter(cells)
    ill = Counter(cell for cell, has in zip(cells, people.diagnosis == OUTBREAK, strict=True) if has)
    shares = [ill[cell] / many for cell, many in size.items() if many >= 20]
    struck = [share for share in shares if share > 0.5]
    assert min(struck) > 0.75
    assert 0.08 < len(struck) / len(shares) < 0.22
    assert max(share for share in shares if share <= 0.5) < 0.35
