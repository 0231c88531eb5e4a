"""Differential privacy that is stated, proven, audited and paid from a durable budget."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sourdine import accounting as accounting
    from sourdine import anonymity as anonymity
    from sourdine import audit as audit
    from sourdine import estimators as estimators
    from sourdine import learning as learning
    from sourdine import local as local
    from sourdine import mechanisms as mechanisms
    from sourdine import report as report
    from sourdine.accounting import explain as explain
    from sourdine.accounting.dpsgd.training import dpsgd_epsilon as dpsgd_epsilon
    from sourdine.accounting.ledger import Ledger as Ledger
    from sourdine.accounting.spend import Spend as Spend
    from sourdine.core.distance import Distance as Distance
    from sourdine.core.distance import Neighbours as Neighbours
    from sourdine.core.errors import BudgetExceeded as BudgetExceeded
    from sourdine.core.errors import InvalidParameter as InvalidParameter
    from sourdine.core.errors import LedgerError as LedgerError
    from sourdine.core.errors import SourdineError as SourdineError
    from sourdine.frames.schema import PrivacyUnit
    from sourdine.tables import statistics as statistics
    from sourdine.tables.quantiles import quantiles as quantiles
    from sourdine.tables.query import Query as Query
    from sourdine.tables.specification import Specification as Specification
    from sourdine.tables.table import Table as Table

    __version__: str

_PACKAGES = {
    "accounting": "accounting",
    "anonymity": "anonymity",
    "audit": "audit",
    "estimators": "estimators",
    "explain": "accounting.explain",
    "learning": "learning",
    "local": "local",
    "mechanisms": "mechanisms",
    "report": "report",
    "statistics": "tables.statistics",
}
_UNLISTED = frozenset(
    {"collector", "core", "frames", "studio", "tables", "testing"}
)  # what the others are made of
_HOMES = {
    "BudgetExceeded": "core.errors",
    "Distance": "core.distance",
    "InvalidParameter": "core.errors",
    "Ledger": "accounting.ledger",
    "LedgerError": "core.errors",
    "Neighbours": "core.distance",
    "PrivacyUnit": "frames.schema",
    "Query": "tables.query",
    "SourdineError": "core.errors",
    "Specification": "tables.specification",
    "Spend": "accounting.spend",
    "Table": "tables.table",
    "dpsgd_epsilon": "accounting.dpsgd.training",
    "quantiles": "tables.quantiles",
}

_RENAMED = {
    "Deviation": "statistics.StdDev",
    "KaryOracle": "local.GRR",
    "KeyThreshold": "mechanisms.PartitionThreshold",
    "Law": "core.distributions.LossDistribution",
    "LocalHashing": "local.OLH",
    "Loss": "core.loss.PrivacyLoss",
    "OptimalUnary": "local.OUE",
    "Plan": "tables.ReleasePlan",
    "SymmetricUnary": "local.SUE",
    "Unit": "PrivacyUnit",
    "epsilon_of_steps": "dpsgd_epsilon",
    "fit": "learning.fit",
    "rehearse": "tables.rehearse",
}

__all__ = [
    "BudgetExceeded",
    "Distance",
    "InvalidParameter",
    "Ledger",
    "LedgerError",
    "Neighbours",
    "PrivacyUnit",
    "Query",
    "SourdineError",
    "Specification",
    "Spend",
    "Table",
    "__version__",
    "accounting",
    "anonymity",
    "audit",
    "dpsgd_epsilon",
    "estimators",
    "explain",
    "learning",
    "local",
    "mechanisms",
    "quantiles",
    "report",
    "statistics",
]


def __getattr__(name: str) -> object:
    """Packages and names are imported when first used, so that `import sourdine` costs next to nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("sourdine")
    if name in _PACKAGES or name in _UNLISTED:
        return import_module(f"sourdine.{_PACKAGES.get(name, name)}")
    if name in _HOMES:
        return getattr(import_module(f"sourdine.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'sourdine' has no attribute '{name}'.{_elsewhere(name)}", name=name)


def _elsewhere(name: str) -> str:
    """Where to find what was renamed."""
    return f" It is sourdine.{_RENAMED[name]} now." if name in _RENAMED else ""


def __dir__() -> list[str]:
    return sorted(__all__)
