"""What a benchmark finds, as lines that people read and that the page of all benchmarks is made from."""

from rich.console import Console

MET, MISSED, BETTER = "met", "missed", "better elsewhere"


def verdict(console: Console, met: bool, text: str) -> None:
    """Whether a target is met, on one line."""
    _line(console, MET if met else MISSED, text)


def better(console: Console, text: str) -> None:
    """Where a peer, or doing without privacy, is better than we are."""
    _line(console, BETTER, text)


def findings(output: str) -> list[tuple[str, str]]:
    """The lines among what a benchmark printed: how it stands, and what it says.

    >>> findings("a table\\nmet: 2 times as quick\\nmissed: 3 GB")
    [('met', '2 times as quick'), ('missed', '3 GB')]
    """
    found = []
    for line in output.splitlines():
        mark, colon, text = line.partition(": ")
        if colon and mark in (MET, MISSED, BETTER):
            found.append((mark, text))
    return found


def _line(console: Console, mark: str, text: str) -> None:
    console.print(f"{mark}: {text}", soft_wrap=True, markup=False, highlight=False)
