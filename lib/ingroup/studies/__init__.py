"""The four studies, a folder each with the same files."""
