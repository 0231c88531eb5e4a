from typing import Any

import pytest

from sourdine.core.errors import InvalidParameter
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
