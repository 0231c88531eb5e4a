import os
import threading
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.errors import InvalidParameter
from sourdine.core.text import MOST_BYTES, parse_toml, read_toml

HERE = Path("people.toml")
REFUSED = {
    "digits": ("a = " + "9" * 5000, "320 digits or more"),
    "hexadecimal": ("a = 0x" + "f" * 50_000, "320 digits or more"),
    "decimals": ("a = 0." + "1" * 5000, "320 digits or more"),
    "lists": ("a = " + "[" * 50_000 + "]" * 50_000, "20 deep"),
    "tables": ("a = " + "{a=" * 5_000 + "1" + "}" * 5_000, "20 deep"),
    "points": (".".join("a" * 50_000) + " = 1", "20 deep"),
    "points with spaces": (" . ".join("a" * 50_000) + " = 1", "20 deep"),
    "quoted points": (".".join(['"a"'] * 50_000) + " = 1", "20 deep"),
    "a block of points": ("[" + ".".join("a" * 50_000) + "]\nb = 1", "20 deep"),
    "points behind quotes": ('a = {b = """c"""", ' + ".".join("a" * 50_000) + " = 1}", "20 deep"),
    "fields": ("".join(f"a{k} = 1\n" for k in range(50_000)), "50,000 fields and blocks"),
    "blocks": ("".join(f"[a{k}]\n" for k in range(50_000)), "50,000 fields and blocks"),
    "queries": ("[[a]]\nb = 1\n" * 50_000, "100,000 fields and blocks"),
    "quotes": ("a = " + '\\"' * 1_000_000, "not valid TOML"),
    "letters": ("z" * 4_000_000, "not valid TOML"),
    "twice": ("a = 1\na = 2", "not valid TOML"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_nobody_writes_is_refused_in_one_sentence(case: str) -> None:
    text, words = REFUSED[case]
    with pytest.raises(InvalidParameter, match="The specification people") as problem:
        parse_toml(text, HERE)
    assert words in str(problem.value)
    assert len(str(problem.value)) < 300


def test_what_people_write_is_read() -> None:
    keys = [f"key {k}. = [{{#" for k in range(10_000)]
    columns = "".join(f'[columns.c{k}]\ntype = "flag"  # a = b.c.d.e [[[[\n' for k in range(500))
    text = f"{columns}[columns.town]\nkeys = {keys!r}\nwords = '''{'[' * 100}'''\nlong = \"{'a.' * 100}\"\n"
    for end in ("\n", "\r\n"):
        held = parse_toml(text.replace("\n", end), HERE)
        assert len(held["columns"]) == 501
        assert held["columns"]["town"]["keys"] == keys


def test_a_file_without_an_end_is_left_alone(tmp_path: Path) -> None:
    large = tmp_path / "table.toml"
    with large.open("wb") as file:
        os.truncate(file.fileno(), 10 * MOST_BYTES)
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)

    def pour() -> None:
        with pipe.open("wb") as file:
            file.write(b"#" * (MOST_BYTES + 1))

    threading.Thread(target=pour, daemon=True).start()
    for path in (large, pipe):
        with pytest.raises(InvalidParameter, match="larger than 4 megabytes"):
            read_toml(path)


@given(
    st.lists(
        st.sampled_from(
            ['"', "'", '"""', "'''", "\\", "\n", "#", "a", " = ", "1", "[", "]", "{", "}", ".", ","]
        ),
        max_size=40,
    )
)
def test_the_first_look_changes_nothing_for_short_texts(parts: list[str]) -> None:
    text = "".join(parts)
    try:
        wanted = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(InvalidParameter):
            parse_toml(text, HERE)
    else:
        assert parse_toml(text, HERE) == wanted


def test_a_mark_at_the_beginning_is_no_part_of_a_specification(tmp_path: Path) -> None:
    """Editors on Windows write it."""
    place = tmp_path / "people.toml"
    place.write_bytes(b"\xef\xbb\xbfa = 1\r\n")
    assert read_toml(place) == {"a": 1}
