"""Imports and exports: files of many formats in, whole runs and their votes out."""
