"""Differential privacy that is stated, proven, audited and paid from a durable budget."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sourdine import accounting as accounting
    from sourdine import anonymity as anonymity
    from sourdine import audit as audit
    from sourdine import core as core
    from sourdine import experiments as experiments
    from sourdine import frames as frames
    from sourdine import learning as learning
    from sourdine import local as local
    from sourdine import mechanisms as mechanisms
    from sourdine import report as report
    from sourdine import tables as tables
    from sourdine import testing as testing
    from sourdine.accounting.ledger import Ledger as Ledger
    from sourdine.core.distance import Distance as Distance
    from sourdine.core.distance import Neighbours as Neighbours
    from sourdine.core.distance import Norm as Norm
    from sourdine.core.errors import BudgetExceeded as BudgetExceeded
    from sourdine.core.errors import InvalidParameter as InvalidParameter
    from sourdine.core.errors import LedgerError as LedgerError
    from sourdine.core.errors import SourdineError as SourdineError
    from sourdine.core.errors import UnsupportedLoss as UnsupportedLoss
    from sourdine.frames.privacy_unit import PrivacyUnit as PrivacyUnit
    from sourdine.tables.quantiles import quantiles as quantiles
    from sourdine.tables.query import Query as Query
    from sourdine.tables.table import Table as Table

    __version__: str

_ROOMS = frozenset(
    {
        "accounting",
        "anonymity",
        "audit",
        "core",
        "experiments",
        "frames",
        "learning",
        "local",
        "mechanisms",
        "report",
        "tables",
        "testing",
    }
)
_HOMES = {
    "BudgetExceeded": "core.errors",
    "Ledger": "accounting.ledger",
    "LedgerError": "core.errors",
    "Distance": "core.distance",
    "InvalidParameter": "core.errors",
    "Neighbours": "core.distance",
    "Norm": "core.distance",
    "Query": "tables.query",
    "SourdineError": "core.errors",
    "Table": "tables.table",
    "PrivacyUnit": "frames.privacy_unit",
    "UnsupportedLoss": "core.errors",
    "quantiles": "tables.quantiles",
}

__all__ = [
    "BudgetExceeded",
    "Distance",
    "InvalidParameter",
    "Ledger",
    "LedgerError",
    "Neighbours",
    "Norm",
    "PrivacyUnit",
    "Query",
    "SourdineError",
    "Table",
    "UnsupportedLoss",
    "__version__",
    "accounting",
    "anonymity",
    "audit",
    "core",
    "experiments",
    "frames",
    "learning",
    "local",
    "mechanisms",
    "quantiles",
    "report",
    "tables",
    "testing",
]


def __getattr__(name: str) -> object:
    """Rooms and names are imported when first used, so that `import sourdine` costs next to nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("sourdine")
    if name in _ROOMS:
        return import_module(f"sourdine.{name}")
    if name in _HOMES:
        return getattr(import_module(f"sourdine.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'sourdine' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
