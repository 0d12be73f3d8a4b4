"""Jeoung et al. (EMNLP 2023): how warm and how competent does society see a group?"""
