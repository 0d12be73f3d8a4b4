"""Wang et al. (2024): does a judge take the side of who asks?"""
