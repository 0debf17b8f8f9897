"""What judges and models are told, and what is read from what they say. Knows no Django."""
