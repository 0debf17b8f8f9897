"""Small things that every app uses."""
