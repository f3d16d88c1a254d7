"""Weights at work: sessions, cross-encoders, the embedder."""
