"""The bundled reranker: data, training, evaluation, export; commands of ``python -m training.rerank``."""
