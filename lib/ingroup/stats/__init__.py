"""Statistics that several studies share. Randomness comes from a generator that is passed in."""
