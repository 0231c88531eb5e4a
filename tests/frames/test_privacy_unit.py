from typing import Any

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit


@pytest.mark.parametrize(
    "bad",
    [
        {"rows": 0},
        {"rows": 2},
        {"groups": 2},
        {"column": "who", "groups": 0},
        {"column": "who", "rows": 1.5},
        {"column": "who", "rows": 1 << 21},
        {"column": "who", "groups": 1 << 20},
        {"column": ""},
        {"column": 3},
        {"name": ""},
        {"name": " "},
        {"name": None},
    ],
)
def test_a_bad_unit_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=f"The '{list(bad)[-1]}' of Unit must"):
        PrivacyUnit(**bad)
