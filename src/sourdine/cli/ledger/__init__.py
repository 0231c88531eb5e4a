"""`sourdine ledger`."""
