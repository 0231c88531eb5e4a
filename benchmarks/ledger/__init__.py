"""How fast a ledger takes spends, and whether any is lost when its writers are killed."""
