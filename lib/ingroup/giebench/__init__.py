"""GIEBench (Wang et al. 2024): whose side does a judge take when it knows who asks?"""
