"""The pages of runs and pairs."""
