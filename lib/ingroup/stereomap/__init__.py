"""Jeoung, Ge and Diesner (EMNLP 2023): how models think that society sees groups of people."""
