"""Jeoung et al. (EMNLP 2023): how warm and how competent society sees a group."""
