"""Quality scores, share links and exports come to live here; it may read every other app."""
