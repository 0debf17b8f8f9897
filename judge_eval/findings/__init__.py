"""What a run's votes and verdicts show: read, computed in the background, and kept for pages."""
