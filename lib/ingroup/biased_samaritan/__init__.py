"""Fagan, Juyaal, Yu and Pun (2025): how helpful models expect people of social groups to be."""
