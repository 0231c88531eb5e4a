"""Names of a package that load their module when they are first asked for.

Whoever wants one part then does not wait for the others.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec


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
