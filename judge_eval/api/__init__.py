"""The API of runs, verdicts and votes."""
