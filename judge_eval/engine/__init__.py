"""Runs at work: calls are claimed, made, written down, and made into verdicts."""
