"""Hou et al. (NAACL 2025): whether models rate the emotions of their own group as stronger."""
