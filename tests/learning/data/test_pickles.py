import os
import pickle
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.learning.data.pickles import NotPlain, read_pickle
from tests.learning.data_files import cifar_batch, cifar_meta, cifar_pickle, dictionary_of_python_2

ROWS, LABELS = cifar_batch(6, 1)


def test_a_pickle_of_python_2_is_read_as_python_itself_does() -> None:
    raw = cifar_pickle(ROWS, LABELS)
    theirs, ours = pickle.loads(raw, encoding="latin1"), read_pickle(raw)
    assert ours.keys() == theirs.keys()
    data = ours.pop("data")
    assert isinstance(data, np.ndarray)
    assert np.array_equal(data, theirs.pop("data"))
    assert ours == theirs
    assert read_pickle(cifar_meta()) == pickle.loads(cifar_meta(), encoding="latin1")


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize("order", ["C", "F"])
def test_pickles_that_were_written_again_are_read_too(protocol: int, order: Literal["C", "F"]) -> None:
    held = {
        b"data": np.asarray(ROWS, order=order),
        "labels": LABELS,
        "pair": (1, None, True, 2.5),
        "more": {"a": []},
    }
    found = read_pickle(pickle.dumps(held, protocol))
    assert isinstance(found["data"], np.ndarray)
    assert np.array_equal(found["data"], ROWS)
    assert (found["labels"], found["pair"], found["more"]) == (LABELS, (1, None, True, 2.5), {"a": []})


class _Runs:
    def __init__(self, function: object, *given: object) -> None:
        self._held = function, given

    def __reduce__(self) -> tuple[object, object]:
        return self._held


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "wrap", [lambda held: held, lambda held: {"data": held}, lambda held: {"a": [(held,)]}]
)
def test_what_would_be_run_is_not(protocol: int, wrap: Callable[[object], object], tmp_path: Path) -> None:
    place = tmp_path / "run"
    for held in (_Runs(os.mkdir, str(place)), _Runs(eval, f"__import__('os').mkdir({str(place)!r})")):
        raw = pickle.dumps(wrap(held), protocol)
        with pytest.raises(NotPlain):
            read_pickle(raw)
        assert not place.exists()
        pickle.loads(raw)  # Python's own reader does run it
        assert place.exists()
        place.rmdir()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "cut short"),
        (b"\x80\x02}", "cut short"),
        (b"no pickle", "names|instruction|cut short"),
        (cifar_pickle(ROWS, LABELS)[:-40], "cut short"),
        (b"cos\nsystem\n.", "names 'os system'"),
        (b"cnumpy\nfromfile\n.", "names 'numpy fromfile'"),
        (b"cnumpy\nndarray.tofile\n.", "names 'numpy ndarray.tofile'"),
        (b"\x8c\x02os\x8c\x06system\x93.", "names 'os system'"),
        (b"KK\x93.", "names 'None'|cut short"),
        (b"(ios\nsystem\n.", "the instruction INST"),
        (b"(cnumpy\nndarray\no.", "the instruction OBJ"),
        (b"cnumpy\nndarray\n)\x81.", "the instruction NEWOBJ"),
        (b"\x82\x01.", "the instruction EXT1"),
        (b"Pthing\n.", "the instruction PERSID"),
        (b"U\x01aQ.", "the instruction BINPERSID"),
        (b"cnumpy\nndarray\n(K\x05\x85tR.", "asks for a call"),
        (b"U\x01a(K\x01tR.", "asks for a call"),
        (b"cnumpy\ndtype\n(U\x01OK\x00K\x01tR.", "something else than bytes"),
        (b"cnumpy\ndtype\n(U\x02f8K\x00K\x01tR.", "something else than bytes"),
        (b"}}b.", "asks for an object"),
        (b"K\x01.", "holds no dictionary"),
        (b"}K\x01K\x02s.", "keys are no texts"),
        (b"}r\xff\xff\xff\x7f.", "too many places"),  # for which Python's reader takes 16 GB
        (b"}h\x05.", "cut short or damaged"),
        (b"e.", "cut short or damaged"),
        (b"0.", "the instruction POP"),
    ],
)  # fmt: skip
def test_what_is_no_plain_value_is_refused_with_what_it_is(raw: bytes, message: str) -> None:
    with pytest.raises(NotPlain, match=message):
        read_pickle(raw)


def test_an_array_must_have_its_own_size() -> None:
    raw = cifar_pickle(ROWS, LABELS)
    shape = b"K\x06M\x00\x0c\x86"
    assert raw.count(shape) == 1
    for other in (
        b"K\x07M\x00\x0c\x86",
        b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86",
        b"J\xff\xff\xff\xffM\x00\x0c\x86",
    ):
        with pytest.raises(NotPlain, match=r"not of its own size|no shape"):
            read_pickle(raw.replace(shape, other))


def test_deep_nesting_ends_in_a_sentence() -> None:
    deep = b"K\x00" + b"\x85" * 8_000
    assert read_pickle(dictionary_of_python_2({"a": deep}))
    with pytest.raises(NotPlain):
        read_pickle(b"}" + deep + b"K\x01s.")  # as a key, it ends Python's own process
    with pytest.raises(NotPlain):
        read_pickle(b"cnumpy\ndtype\n" + deep + b"R.")


@settings(max_examples=30)
@given(st.data())
def test_bytes_at_random_are_refused_or_plain(data: st.DataObject) -> None:
    raw = bytearray(cifar_pickle(ROWS[:1, :8], LABELS[:1]))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(NotPlain):
        assert isinstance(read_pickle(bytes(raw)), dict)


def test_a_text_of_four_bytes_length_cannot_claim_more_than_there_is() -> None:
    with pytest.raises(NotPlain, match="cut short"):
        read_pickle(b"\x80\x02T" + struct.pack("<i", 2**31 - 1) + b"abc.")
