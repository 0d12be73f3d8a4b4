"""Hou et al. (NAACL 2025): do models rate the emotions of their own group as stronger?"""
