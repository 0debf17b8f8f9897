"""What was made elsewhere comes in, and all that is here goes out."""
