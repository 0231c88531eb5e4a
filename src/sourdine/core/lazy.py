"""What is loaded when it is first asked for: names of a package, and the special functions of scipy.

Whoever wants one part then does not wait for the others. scipy takes longer than everything else that a table
needs before its first question.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.special import (
        bdtr,
        bdtrc,
        betainc,
        betaincinv,
        chdtrc,
        chdtri,
        expit,
        fdtri,
        gammaln,
        lambertw,
        log_ndtr,
        logit,
        logsumexp,
        ndtr,
        ndtri,
        ndtri_exp,
        xlog1py,
        xlogy,
    )

__all__ = [
    "bdtr",
    "bdtrc",
    "betainc",
    "betaincinv",
    "chdtrc",
    "chdtri",
    "expit",
    "fdtri",
    "gammaln",
    "lambertw",
    "log_ndtr",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "ndtri_exp",
    "xlog1py",
    "xlogy",
]
_SPECIAL = tuple(__all__)
__all__ += ["late"]


def late(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """The `__getattr__` of a package whose modules have these names; modules are found by theirs, too."""
    home = {name: module for module, names in homes.items() for name in names}

    def find(name: str) -> object:
        if name in home:
            return getattr(import_module(f"{package}.{home[name]}"), name)
        if not name.startswith("_") and find_spec(f"{package}.{name}"):
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module '{package}' has no attribute '{name}'.", name=name)

    return find


def _function(name: str) -> Any:
    """A function that looks itself up when it is first called."""
    itself: Any = None

    def function(*args: Any, **options: Any) -> Any:
        nonlocal itself
        if itself is None:
            from scipy import special

            itself = getattr(special, name)
        return itself(*args, **options)

    function.__name__ = function.__qualname__ = name
    return function


if not TYPE_CHECKING:
    globals().update({name: _function(name) for name in _SPECIAL})


def install_line(extra: str) -> str:
    """Return the command that installs what an extra of Sourdine needs.

    It names the distributions themselves, since `sourdine` with the extra in brackets is on no index.

    >>> install_line("excel")
    'pip install "openpyxl>=3.1"'
    """
    import os
    import re
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("sourdine") or []
    except PackageNotFoundError:  # the sources are on the path, and were never installed
        lines = []
    needs = [
        f'"{requirement.strip()}"'
        for requirement, _, marker in (line.partition(";") for line in lines)
        if re.search(rf"extra == ['\"]{extra}['\"]", marker)
        and (os.name != "nt" or "platform_system" not in marker)
    ]
    return f"pip install {' '.join(needs)}" if needs else f'pip install -e ".[{extra}]"'
