"""The ONNX graph of a BERT encoder, built straight from its weights, with attention already fused.

A tracing exporter records what one version of a modelling library happens to do, and a fusion pass then has
to recognise it. BERT is small enough to write down: the graph below has one ``Attention`` node a layer,
needs neither PyTorch nor an optimiser, comes out the same on every machine, and computes the last layer of
a classifier for the first token only, because nothing else of that layer is read.

Architecture: Devlin et al. 2019, "BERT"; fused operators: ONNX Runtime's ``com.microsoft`` domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surefoot.errors import ModelError, missing_extra

__all__ = ["OPSET", "bert_graph", "can_build"]

OPSET = 17
"""Version of the standard operator set; the first with ``LayerNormalization``."""

_MICROSOFT = "com.microsoft"
_MASKED = float(np.finfo(np.float32).min)  # what Hugging Face adds to the scores of padding

Array = npt.NDArray[np.float32]


def can_build(config: Mapping[str, Any]) -> bool:
    """Whether :func:`bert_graph` knows the architecture that a Hugging Face ``config.json`` describes."""
    return (
        config.get("model_type") == "bert"
        and config.get("hidden_act", "gelu") == "gelu"
        and config.get("position_embedding_type") in (None, "absolute")
        and not config.get("is_decoder")
        and _architecture(config) in ("BertForSequenceClassification", "BertModel")
    )


def bert_graph(config: Mapping[str, Any], weights: Mapping[str, Array]) -> Any:
    """Write down the graph.

    Args:
        config: the Hugging Face ``config.json``; :func:`can_build` must accept it.
        weights: float32 tensors under their Hugging Face names, with or without the ``bert.`` prefix.

    Returns:
        An ``onnx.ModelProto`` with int64 inputs ``input_ids``, ``attention_mask`` and ``token_type_ids`` of
        shape (batch, sequence), and one float32 output: ``logits`` (batch, labels) for a classifier,
        ``last_hidden_state`` (batch, sequence, width) for a bare encoder.

    Raises:
        ModelError: a tensor is missing or has a shape that the config does not allow.
        MissingExtraError: ``onnx`` is not installed.
    """
    return _Builder(config, weights).build()


def _architecture(config: Mapping[str, Any]) -> str:
    names = config.get("architectures") or ["BertModel"]
    return str(names[0])


class _Builder:
    """Collects nodes and initialisers; every method returns the name of the tensor it made."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, Array]) -> None:
        with missing_extra("convert", purpose="convert a model"):
            from onnx import TensorProto, helper, numpy_helper
        self._helper, self._numpy, self._type = helper, numpy_helper, TensorProto
        self._config = config
        self._weights = weights
        self._width = int(config["hidden_size"])
        self._heads = int(config["num_attention_heads"])
        self._layers = int(config["num_hidden_layers"])
        self._epsilon = float(config.get("layer_norm_eps", 1e-12))
        self._classifier = _architecture(config) == "BertForSequenceClassification"
        self._nodes: list[Any] = []
        self._initializers: dict[str, Any] = {}

    def build(self) -> Any:
        last = self._layers - 1
        hidden = self._embeddings()
        mask = self._node("Cast", ["attention_mask"], "mask", to=self._type.INT32)
        for layer in range(self._layers):
            hidden = self._layer(layer, hidden, mask, first_only=self._classifier and layer == last)
        output = self._head(hidden) if self._classifier else self._rename(hidden, "last_hidden_state")
        return self._model(output)

    def _embeddings(self) -> str:
        # Range and Gather would be the plain way; ONNX Runtime fuses these two into a Slice it then refuses.
        start, one, two = (self._constant(f"at_{i}", np.array([i], np.int64)) for i in range(3))
        axis = self._constant("first_axis", np.array([0], np.int64))
        shape = self._node("Shape", ["input_ids"], "shape")
        length = self._node("Slice", [shape, one, two, axis], "length")
        limit = int(self._config["max_position_embeddings"])
        every = self._constant("every_position", np.arange(limit, dtype=np.int64))
        positions = self._node("Slice", [every, start, length, axis], "positions")
        prefix = "embeddings."
        width = (None, self._width)
        word = self._gather(prefix + "word_embeddings", "input_ids", width)
        segment = self._gather(prefix + "token_type_embeddings", "token_type_ids", width)
        position = self._gather(prefix + "position_embeddings", positions, width)
        total = self._node("Add", [word, segment], "embeddings.word_segment")
        total = self._node("Add", [total, position], "embeddings.sum")
        norm = prefix + "LayerNorm"
        return self._node(
            "LayerNormalization",
            [total, *self._norm_weights(norm)],
            norm + ".out",
            axis=-1,
            epsilon=self._epsilon,
        )

    def _layer(self, index: int, hidden: str, mask: str, *, first_only: bool) -> str:
        prefix = f"encoder.layer.{index}."
        parts = [f"{prefix}attention.self.{part}" for part in ("query", "key", "value")]
        square = (self._width, self._width)
        weight = np.concatenate([self._tensor(part + ".weight", square).T for part in parts], axis=1)
        bias = np.concatenate([self._tensor(part + ".bias", (self._width,)) for part in parts])
        context = self._node(
            "Attention",
            [
                hidden,
                self._constant(f"{prefix}attention.qkv.weight", weight),
                self._constant(f"{prefix}attention.qkv.bias", bias),
                mask,
            ],
            f"{prefix}attention.context",
            domain=_MICROSOFT,
            num_heads=self._heads,
            mask_filter_value=_MASKED,
        )
        if first_only:  # a classifier reads one token; the rest of its last layer would be thrown away
            context = self._first_token(context, f"{prefix}attention.first")
            hidden = self._first_token(hidden, f"{prefix}input.first")
        wide = int(self._config["intermediate_size"])
        attended = self._add_and_norm(f"{prefix}attention.output", context, hidden, square)
        inner = self._matmul(f"{prefix}intermediate.dense", attended, (wide, self._width))
        inner_bias = self._constant(
            f"{prefix}intermediate.dense.bias", self._tensor(f"{prefix}intermediate.dense.bias", (wide,))
        )
        gelu = self._node("BiasGelu", [inner, inner_bias], f"{prefix}intermediate.gelu", domain=_MICROSOFT)
        return self._add_and_norm(f"{prefix}output", gelu, attended, (self._width, wide))

    def _add_and_norm(self, prefix: str, inner: str, skip: str, shape: tuple[int, int]) -> str:
        product = self._matmul(prefix + ".dense", inner, shape)
        bias = self._constant(prefix + ".dense.bias", self._tensor(prefix + ".dense.bias", shape[:1]))
        return self._node(
            "SkipLayerNormalization",
            [product, skip, *self._norm_weights(prefix + ".LayerNorm"), bias],
            prefix + ".out",
            domain=_MICROSOFT,
            epsilon=self._epsilon,
        )

    def _head(self, hidden: str) -> str:
        first = self._node("Squeeze", [hidden, self._constant("at_1", np.array([1], np.int64))], "first")
        square = (self._width, self._width)
        pooled = self._node("Tanh", [self._linear("pooler.dense", first, square, "pooled")], "pooled.tanh")
        labels = self._tensor("classifier.bias").shape[0]
        return self._linear("classifier", pooled, (labels, self._width), "logits")

    def _linear(self, prefix: str, inner: str, shape: tuple[int, int], output: str) -> str:
        bias = self._constant(prefix + ".bias", self._tensor(prefix + ".bias", shape[:1]))
        return self._node("Add", [self._matmul(prefix, inner, shape), bias], output)

    def _matmul(self, prefix: str, inner: str, shape: tuple[int, int]) -> str:
        weight = np.ascontiguousarray(self._tensor(prefix + ".weight", shape).T)
        return self._node("MatMul", [inner, self._constant(prefix + ".weight", weight)], prefix + ".product")

    def _gather(self, prefix: str, indices: str, shape: tuple[int | None, int]) -> str:
        table = self._constant(prefix + ".weight", self._tensor(prefix + ".weight", shape))
        return self._node("Gather", [table, indices], prefix + ".out", axis=0)

    def _first_token(self, hidden: str, output: str) -> str:
        start, one = (self._constant(f"at_{i}", np.array([i], np.int64)) for i in range(2))
        return self._node("Slice", [hidden, start, one, one], output)

    def _norm_weights(self, prefix: str) -> list[str]:
        return [
            self._constant(f"{prefix}.{part}", self._tensor(f"{prefix}.{part}", (self._width,)))
            for part in ("weight", "bias")
        ]

    def _tensor(self, name: str, shape: tuple[int | None, ...] | None = None) -> Array:
        found = self._weights.get("bert." + name, self._weights.get(name))
        if found is None:
            # A classification head that is not in the file would be filled with noise by some loaders.
            raise ModelError(f"the checkpoint has no tensor {name!r}")
        fits = shape is None or (
            found.ndim == len(shape)
            and all(want in (None, size) for want, size in zip(shape, found.shape, strict=True))
        )
        if not fits:
            raise ModelError(f"tensor {name!r} has shape {found.shape}, the config says {shape}")
        return found

    def _constant(self, name: str, value: npt.NDArray[Any]) -> str:
        if name not in self._initializers:
            self._initializers[name] = self._numpy.from_array(np.ascontiguousarray(value), name)
        return name

    def _node(self, kind: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        self._nodes.append(
            self._helper.make_node(kind, inputs, [output], name=output, domain=domain, **attributes)
        )
        return output

    def _rename(self, name: str, output: str) -> str:
        return self._node("Identity", [name], output)

    def _model(self, output: str) -> Any:
        integers = [
            self._helper.make_tensor_value_info(name, self._type.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ]
        shape: list[str | int | None] = ["batch", "sequence", self._width]
        if self._classifier:
            shape = ["batch", self._tensor("classifier.bias").shape[0]]
        graph = self._helper.make_graph(
            self._nodes,
            "bert",
            integers,
            [self._helper.make_tensor_value_info(output, self._type.FLOAT, shape)],
            list(self._initializers.values()),
        )
        opsets = [self._helper.make_opsetid("", OPSET), self._helper.make_opsetid(_MICROSOFT, 1)]
        return self._helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="surefoot")
