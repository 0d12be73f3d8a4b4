"""Fagan et al. (2025): whom a model expects to help."""
