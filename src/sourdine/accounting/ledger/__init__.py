"""The durable ledger: budgets in a file, receipts, and what they mean."""

from sourdine.accounting.ledger.allowance import AllowanceRequest, Allowances, LedgerAllowance, spending_from
from sourdine.accounting.ledger.budget import (
    BasicBudget,
    Budget,
    ConcentratedBudget,
    GaussianBudget,
    OdometerBudget,
    PureBudget,
    RenyiBudget,
    RenyiGridBudget,
)
from sourdine.accounting.ledger.ledger import DeclaredBlock, Ledger
from sourdine.accounting.ledger.receipt import Entry, Receipt, Status
from sourdine.accounting.ledger.terms import Period, Terms

__all__ = [
    "AllowanceRequest",
    "Allowances",
    "BasicBudget",
    "Budget",
    "ConcentratedBudget",
    "DeclaredBlock",
    "Entry",
    "GaussianBudget",
    "Ledger",
    "LedgerAllowance",
    "OdometerBudget",
    "Period",
    "PureBudget",
    "Receipt",
    "RenyiBudget",
    "RenyiGridBudget",
    "Status",
    "Terms",
    "spending_from",
]
