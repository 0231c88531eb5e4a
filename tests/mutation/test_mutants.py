"""What mutants are made of, on a module of a few lines."""

import ast

import pytest

from tests.mutation.mutants import mutants

SOURCE = b'''"""Not changed: 1 < 2."""
import math

LIMIT: int = 3


@property
def above(x: "int | float", margin: float = 1e-9) -> float:
    """Not changed either."""
    if x < 0 and margin:
        raise ValueError(f"{x - 1} is below {0}")
    x += margin
    return math.nextafter(max(x + 2 * margin, 7 // LIMIT), math.inf) if not margin else x
'''


def made(place: str = "above") -> set[str]:
    return {one.after for one in mutants("m.py", SOURCE) if one.place == place}


@pytest.mark.parametrize(
    "line",
    [
        "if x <= 0 and margin:",
        "if x < 1 and margin:",
        "if (not (x < 0 and margin)):",
        "if ((x < 0)):",
        "if ((margin)):",
        "x -= margin",
        "pass",
        'def above(x: "int | float", margin: float = 0.0) -> float:',
        "return math.nextafter(min(x + 2 * margin, 7 // LIMIT), math.inf) if not margin else x",
        "return math.nextafter(max(x - 2 * margin, 7 // LIMIT), math.inf) if not margin else x",
        "return math.nextafter(max((x), 7 // LIMIT), math.inf) if not margin else x",
        "return math.nextafter(max(x + 3 * margin, 7 // LIMIT), math.inf) if not margin else x",
        "return math.nextafter(max(x + 2 * margin, (-(-(7) // (LIMIT)))), math.inf) if not margin else x",
        "return math.nextafter(max(x + 2 * margin, 7 // LIMIT), (-math.inf)) if not margin else x",
        "return math.nextafter(math.inf, max(x + 2 * margin, 7 // LIMIT)) if not margin else x",
        "return math.nextafter(max(x + 2 * margin, 7 // LIMIT), math.inf) if (margin) else x",
        "return (x)",
    ],
)
def test_each_kind_of_slip_is_made(line: str) -> None:
    assert line in made()


def test_words_types_and_decorators_stay() -> None:
    assert made("") == {"LIMIT: int = 4", "LIMIT: int = 2"}
    assert not any("raise" in line or "Not changed" in line for line in made())


def test_a_mutant_is_another_program_and_leaves_the_rest() -> None:
    for one in mutants("m.py", SOURCE):
        assert one.sound(SOURCE)
        changed = one.apply(SOURCE).decode()
        assert ast.get_docstring(ast.parse(changed)) == "Not changed: 1 < 2."
        assert changed.count("\n") == SOURCE.decode().count("\n")


def test_keys_are_unique_and_do_not_tell_where_a_line_stands() -> None:
    keys = [one.key for one in mutants("m.py", SOURCE)]
    assert len(set(keys)) == len(keys)
    later = mutants("m.py", SOURCE.replace(b"import math", b"import math\n# one more line"))
    assert [one.key for one in later] == keys
    assert [one.order(7) for one in later] == [one.order(7) for one in mutants("m.py", SOURCE)]
