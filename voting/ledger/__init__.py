"""The ledger: entries are sealed in order, hashed, and handed to its projections."""
