"""Frames on which a measure is easy to get wrong: rows of (q, s), an index, and the measure."""

Odd = tuple[list[list[str]], list[int], str]

_PAIRS = [["a", "x"], ["a", "x"], ["b", "x"], ["b", "y"]]
ODD: dict[str, Odd] = {
    "shuffled index, l": ([["a", "x"], ["a", "x"], ["b", "y"], ["b", "y"]], [0, 2, 1, 3], "l"),
    "filtered frame, l": (_PAIRS, [6, 7, 8, 9], "l"),
    "a value no longer possible, delta": (_PAIRS, [0, 1, 2, 3], "delta"),
}
TRUTH = {
    "shuffled index, l": "1",
    "filtered frame, l": "1",
    "a value no longer possible, delta": "inf",
}
