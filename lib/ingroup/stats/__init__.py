"""Statistics that several studies share: arrays or tables in, results out."""
