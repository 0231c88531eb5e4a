from typing import Any

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import in_files
from sourdine.frames import PrivacyUnit


@pytest.mark.parametrize(
    "bad",
    [
        {"max_rows": 0},
        {"max_rows": 2},
        {"max_groups": 2},
        {"column": "who", "max_groups": 0},
        {"column": "who", "max_rows": 1.5},
        {"column": "who", "max_rows": 1 << 21},
        {"column": "who", "max_groups": 1 << 20},
        {"column": ""},
        {"column": 3},
        {"name": ""},
        {"name": " "},
        {"name": None},
    ],
)
def test_a_bad_unit_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=f"The '{list(bad)[-1]}' of PrivacyUnit must"):
        PrivacyUnit(**bad)


def test_a_column_that_is_called_like_the_unit_must_be_said_to_tell_units_apart() -> None:
    with pytest.raises(InvalidParameter, match=r'PrivacyUnit\("plane", column="plane"\)'):
        PrivacyUnit("plane").check_columns(["plane", "delay"])
    with in_files(), pytest.raises(InvalidParameter, match=r'column = "plane" under \[privacy\]'):
        PrivacyUnit("plane").check_columns(["plane", "delay"])
    PrivacyUnit("plane", column="plane").check_columns(["plane", "delay"])
    PrivacyUnit("plane").check_columns(["delay"])
