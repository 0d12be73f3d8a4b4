"""Fagan et al. (2025): whom does a model expect to help?"""
