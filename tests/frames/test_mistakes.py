"""Wrong arguments of constructors are answered in a sentence."""

from typing import Any

import pytest

from sourdine.frames.declared import known_arguments


class Advised:
    @known_arguments(encoding='text={"encoding": ...}')
    def __init__(self, *, text: str = "", columns: str = "") -> None:
        self.both = text + columns


def test_a_wrong_argument_is_answered_with_what_was_meant() -> None:
    assert Advised(text="a", columns="b").both == "ab"
    create: Any = Advised
    with pytest.raises(TypeError, match=r"Advised has no argument 'encoding'\. Write it as text="):
        create(encoding="cp1252")
    with pytest.raises(TypeError, match=r"no argument 'column'\. Did you mean 'columns'\?"):
        create(column="b")
    with pytest.raises(TypeError, match=r"no argument 'zzz'\.$"):
        create(zzz=1)
