"""Arrays and plain values out of a pickle, read as data: nothing in the file can be run.

A pickle is a program for a small machine with a stack. Python's own machine may call whatever a file names.
This one has no way to call anything: it knows the instructions that build numbers, texts, lists, tuples and
dictionaries, and three names of numpy, which it takes as marks of an array of bytes. The first instruction or
name beyond these ends it.
"""

import math
import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 1 << 28  # of a file, and of an array in it
_MOST_STEPS = 1 << 22
_MOST_AXES = 8
_NUMPY = ("numpy.core.multiarray", "numpy._core.multiarray")  # what version 2 of numpy renamed
_KNOWN = {f"{module} _reconstruct": "reconstruct" for module in _NUMPY} | {
    "numpy ndarray": "ndarray",
    "numpy dtype": "dtype",
    "_codecs encode": "encode",  # how Python 3 writes bytes for Python 2
}


class NotPlain(ValueError):
    """The file asks for something else than plain values, or is no pickle; the message says what."""


@dataclass(frozen=True)
class _Name:
    """A name of numpy, as a mark; it stands for nothing that could be called."""

    name: str


@dataclass
class _Array:
    """An array that is made in two instructions: first its place, then its content."""

    values: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class _Bytes:
    """The type of arrays of bytes."""


_MARK = object()


def read_pickle(raw: bytes) -> dict[str, object]:
    """The dictionary in a pickle; its values are numbers, texts, lists, tuples, dictionaries and arrays.

    Strings of Python 2 are texts in latin-1, which keeps every byte.

    >>> read_pickle(b"\\x80\\x02}q\\x00U\\x01aK\\x07s.")
    {'a': 7}
    >>> read_pickle(b"cos\\nsystem\\n(S'echo run'\\ntR.")
    Traceback (most recent call last):
    sourdine.learning.data.pickles.NotPlain: it names 'os system'
    """
    machine = _Machine()
    try:
        for count, (code, argument, _) in enumerate(pickletools.genops(raw)):
            if count >= _MOST_STEPS:
                raise NotPlain("it has too many instructions")
            if code.name == "STOP":
                break
            machine.step(code.name, argument)
    except NotPlain:
        raise
    except (ValueError, IndexError, KeyError, TypeError, OverflowError):  # what bytes at random bring about
        raise NotPlain("it is cut short or damaged") from None
    return machine.result()


@dataclass
class _Machine:
    stack: list[object] = field(default_factory=list)
    memo: dict[int, object] = field(default_factory=dict)

    def step(self, name: str, argument: object) -> None:
        """Carry out one instruction, if it is among those that build plain values."""
        if name in _VALUES:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        elif name in _STEPS:
            _STEPS[name](self, argument)
        elif name not in _SILENT:
            raise NotPlain(f"it holds the instruction {name}")

    def result(self) -> dict[str, object]:
        if len(self.stack) != 1 or not isinstance(self.stack[0], dict):
            raise NotPlain("it holds no dictionary")
        return {
            name: each.values if isinstance(each, _Array) else each for name, each in self.stack[0].items()
        }

    def pop(self) -> object:
        return self.stack.pop()

    def since_mark(self) -> list[object]:
        """What was put down since the last mark, which goes too."""
        place = len(self.stack) - 1
        while self.stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise IndexError
        items = self.stack[place + 1 :]
        del self.stack[place:]
        return items

    def tuple_of(self, count: int) -> None:
        if len(self.stack) < count:
            raise IndexError
        items = tuple(self.stack[-count:])
        del self.stack[-count:]
        self.stack.append(items)

    def append(self, values: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise TypeError
        target.extend(values)

    def dictionary(self, values: list[object]) -> None:
        self.stack.append({})
        self.set_items(values)

    def set_items(self, values: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise TypeError
        for key, value in zip(values[::2], values[1::2], strict=True):
            name = key.decode("latin-1") if isinstance(key, bytes) else key
            if not isinstance(name, str):
                raise NotPlain("it holds a dictionary whose keys are no texts")
            target[name] = value

    def name(self, text: object) -> None:
        if not isinstance(text, str) or text not in _KNOWN:
            raise NotPlain(f"it names {str(text)[:80]!r}")
        self.stack.append(_Name(_KNOWN[text]))

    def name_from_stack(self) -> None:
        last, module = self.pop(), self.pop()
        self.name(f"{module} {last}" if isinstance(last, str) and isinstance(module, str) else None)

    def keep(self, place: object) -> None:
        if not isinstance(place, int) or not 0 <= place < _MOST_STEPS:
            raise NotPlain("it keeps values in too many places")
        self.memo[place] = self.stack[-1]

    def call(self) -> None:
        """No call: the mark and what it is given say what stands in their place."""
        arguments, name = self.pop(), self.pop()
        match name, arguments:
            case _Name(name="reconstruct"), (_Name(name="ndarray"), (0,), "b" | b"b"):
                self.stack.append(_Array())
            case _Name(name="dtype"), (kind, *_):
                if kind not in ("u1", b"u1"):
                    raise NotPlain("it holds an array of something else than bytes")
                self.stack.append(_Bytes())
            case _Name(name="encode"), (str() as text, "latin1"):
                self.stack.append(text.encode("latin-1"))
            case _:
                raise NotPlain("it asks for a call")

    def build(self) -> None:
        state, target = self.pop(), self.stack[-1]
        if isinstance(target, _Bytes):
            return  # the order of the bytes in a number of one byte
        if not isinstance(target, _Array):
            raise NotPlain("it asks for an object")
        match state:
            case (_, tuple() as shape, _Bytes(), columns_first, str() | bytes() as content):
                raw = content.encode("latin-1") if isinstance(content, str) else content
                if len(shape) > _MOST_AXES or not all(type(each) is int and each >= 0 for each in shape):
                    raise NotPlain("it holds an array of no shape")
                if math.prod(shape) != len(raw) or len(raw) > MOST_BYTES:
                    raise NotPlain("it holds an array that is not of its own size")
                flat = np.frombuffer(raw, np.uint8)
                target.values = flat.reshape(shape[::-1]).T if columns_first else flat.reshape(shape)
            case _:
                raise NotPlain("it holds an array of something else than bytes")


_VALUES = frozenset({
    "INT", "BININT", "BININT1", "BININT2", "LONG1", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
})  # fmt: skip
_CONSTANTS: dict[str, Callable[[], object]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
    "MARK": lambda: _MARK,
}
_SILENT = ("PROTO", "FRAME")
_STEPS: dict[str, Callable[[_Machine, object], None]] = {
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.since_mark())),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "LIST": lambda machine, _: machine.stack.append(machine.since_mark()),
    "DICT": lambda machine, _: machine.dictionary(machine.since_mark()),
    "APPEND": lambda machine, _: machine.append([machine.pop()]),
    "APPENDS": lambda machine, _: machine.append(machine.since_mark()),
    "SETITEM": lambda machine, _: machine.set_items([machine.pop(), machine.pop()][::-1]),
    "SETITEMS": lambda machine, _: machine.set_items(machine.since_mark()),
    "GLOBAL": lambda machine, text: machine.name(text),
    "STACK_GLOBAL": lambda machine, _: machine.name_from_stack(),
    "REDUCE": lambda machine, _: machine.call(),
    "BUILD": lambda machine, _: machine.build(),
    "PUT": lambda machine, place: machine.keep(place),
    "BINPUT": lambda machine, place: machine.keep(place),
    "LONG_BINPUT": lambda machine, place: machine.keep(place),
    "MEMOIZE": lambda machine, _: machine.keep(len(machine.memo)),
    "GET": lambda machine, place: machine.stack.append(machine.memo[place]),  # type: ignore[index]
    "BINGET": lambda machine, place: machine.stack.append(machine.memo[place]),  # type: ignore[index]
    "LONG_BINGET": lambda machine, place: machine.stack.append(machine.memo[place]),  # type: ignore[index]
}
