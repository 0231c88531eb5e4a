"""The best of several trainings, told as a mechanism that a ledger pays."""
