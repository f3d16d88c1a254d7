"""Scripts that measure surefoot next to simpler systems; run them as ``python benchmarks/NAME.py``."""
