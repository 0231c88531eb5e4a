"""Options of earlier versions: still understood, with the word that has taken their place."""

import warnings
from collections.abc import Mapping, Sequence

from sourdine.core.errors import OldWord

_RUN = {
    "--batch": "--batch-size",
    "--most": "--max-batch-size",
    "--noise": "--noise-multiplier",
    "--rate": "--sampling-rate",
}
_PAGE = {"-o": "--html", "--output": "--html"}
RENAMED: Mapping[str, Mapping[str, str]] = {  # since 0.2; by verb
    "audit attack": _PAGE,
    "audit training": _RUN | _PAGE,
    "budget calibrate": _RUN,
    "budget curves": _RUN | _PAGE,
    "budget dpsgd": _RUN,
    "budget explain": _RUN | _PAGE,
    "ledger create": {"--reserve": "--selection-delta"},
    "ledger history": _PAGE,
    "report": _PAGE,
    "train fit": _RUN,
    "train memory": _RUN,
    "train plan": _RUN,
    "train sweep": _RUN,
}


def read_old_options(args: Sequence[str]) -> list[str]:
    """The words of a command, each option by its present name.

    >>> read_old_options(["ledger", "create", "new.ledger", "--epsilon=1"])
    ['ledger', 'create', 'new.ledger', '--epsilon=1']
    """
    first = next((place for place, word in enumerate(args) if not word.startswith("-")), len(args))
    for verb, names in RENAMED.items():
        words = verb.split()
        if list(args[first : first + len(words)]) == words:
            begin = first + len(words)
            return [*args[:begin], *(_present(word, names) for word in args[begin:])]
    return list(args)


def _present(word: str, names: Mapping[str, str]) -> str:
    option, equals, value = word.partition("=")
    if option not in names:
        return word
    warnings.warn(
        f"The option '{option}' is called '{names[option]}' now. It is read as before: write the new word.",
        OldWord,
        stacklevel=2,
    )
    return f"{names[option]}{equals}{value}"
