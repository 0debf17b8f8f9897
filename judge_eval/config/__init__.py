"""A run's configuration: read, checked, and what it will take."""
