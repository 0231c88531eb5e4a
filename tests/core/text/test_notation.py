import ast
import tomllib

import pytest

from sourdine.core.format import block, either, entry, group, in_files, setting, value

VALUES: list[object] = ['a "b" \\ c', 3, 0.25, 1.0, 1e-6, True, False, ["x", 1], {"a b": {"c": [True]}}]


@pytest.mark.parametrize("given", VALUES)
def test_what_is_written_is_read_back(given: object) -> None:
    assert ast.literal_eval(value(given)) == given
    with in_files():
        assert tomllib.loads(setting("name", given)) == {"name": given}
        assert tomllib.loads(f"[x]\n{entry('name', given)}") == {"x": {"name": given}}


def test_an_argument_an_entry_and_a_block() -> None:
    assert setting("delta", 1e-6) == "delta=1e-6"
    assert entry("type", "text") == '"type": "text"'
    assert block("columns", "pay", lower=0) == 'columns={"pay": {"lower": 0}}'
    assert group("text", header=False, names=["a"]) == 'text={"header": False, "names": ["a"]}'
    assert either("here", "there") == "here"
    with in_files():
        assert block("columns", "has pay", lower=0) == '[columns."has pay"] lower = 0'
        assert group("text", header=False, names=["a"]) == 'header = false and names = ["a"]'
        assert either("here", "there") == "there"


def test_an_error_ends_it_too() -> None:
    @in_files()
    def read() -> str:
        raise ValueError(setting("a", 1))

    with pytest.raises(ValueError, match="a = 1"):
        read()
    assert setting("a", 1) == "a=1"
