"""Runs at work: their config, calls, verdicts and states."""
