"""Scripts that measure surefoot next to simpler systems: ``python -m benchmarks`` lists them."""
