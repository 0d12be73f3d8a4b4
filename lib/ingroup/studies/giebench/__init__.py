"""Wang et al. (2024): whether a judge takes the side of who asks."""
