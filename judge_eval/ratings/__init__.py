"""The ELO of judges: its rules, its fold over votes, and its projection of the ledger."""
