"""What the outcomes of a run say about its judges, and how sure. Knows no Django."""
