"""Figures of a run as files: results as JSON, a table, a page of its own, charts."""
