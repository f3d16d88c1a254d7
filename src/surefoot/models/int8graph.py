"""A second graph over the same weights, whose matrix products are computed in int8.

Weights are stored in int8 already (:mod:`surefoot.models.int8store`). Here the other side of every product is
rounded too, to 8 bits with one scale for the whole tensor, as it comes: ``DynamicQuantizeMatMul``, and
``QAttention`` for the projections of fused attention. Norms, softmax and attention itself stay float32.
One scale serves all rows of a run, so a pair must run by itself for its logits not to depend on others.

The file holds no large weights. It refers to those inside ``model.onnx`` by offset and length, as ONNX
external data, and takes 0.1 MB.
"""

from __future__ import annotations

from typing import Any, Final

from surefoot.errors import missing_extra

__all__ = ["INT8_FILE", "WEIGHTS_FILE", "int8_graph"]

INT8_FILE: Final = "int8.onnx"
WEIGHTS_FILE: Final = "model.onnx"
"""Where the graph looks for its weights: in its own folder."""

_MICROSOFT: Final = "com.microsoft"
_INLINE: Final = 4096
"""Tensors of fewer bytes are repeated in the graph instead of referred to."""


def int8_graph(stored: bytes) -> bytes | None:
    """The graph that goes with a model written by :func:`surefoot.models.int8store.store_int8`.

    Args:
        stored: content of its :data:`WEIGHTS_FILE`.

    Returns:
        Content for :data:`INT8_FILE` in the same folder; ``None`` where no product could be changed. The same
        input gives the same bytes.

    Raises:
        MissingExtraError: ``onnx`` is not installed.
    """
    with missing_extra("convert", purpose="write a graph for int8 arithmetic"):
        import onnx
    model = onnx.ModelProto.FromString(stored)
    expanded = {
        node.output[0]: node
        for node in model.graph.node
        if node.op_type == "DequantizeLinear" and len(node.input) == 2
    }
    nodes = [made for node in model.graph.node for made in _in_int8(node, expanded)]
    read = {name for node in nodes for name in node.input}
    changed = [name for name in expanded if name not in read]
    if not changed:
        return None
    del model.graph.node[:]
    model.graph.node.extend(node for node in nodes if node.output[0] not in changed)
    _refer(model, stored)
    if all(item.domain != _MICROSOFT for item in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(_MICROSOFT, 1))
    made: bytes = model.SerializeToString(deterministic=True)
    return made


def _in_int8(node: Any, expanded: dict[str, Any]) -> list[Any]:
    """What stands in a node's place; the node itself where nothing does."""
    from onnx import helper

    if len(node.input) < 2 or node.input[1] not in expanded:
        return [node]
    first, (weight, scale) = node.input[0], expanded[node.input[1]].input
    output = node.output[0]
    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    if node.op_type == "MatMul":
        inputs = [first, weight, scale]
        return [
            helper.make_node(
                "DynamicQuantizeMatMul", inputs, [output], name=node.name, domain=_MICROSOFT, **attributes
            )
        ]
    if node.op_type == "Attention" and len(node.input) == 4:  # no past, no bias of positions
        rounded = [f"{output}.{part}" for part in ("uint8", "scale", "zero")]
        inputs = [rounded[0], weight, node.input[2], rounded[1], scale, node.input[3], rounded[2]]
        return [
            helper.make_node("DynamicQuantizeLinear", [first], rounded, name=f"{output}.rounded"),
            helper.make_node("QAttention", inputs, [output], name=node.name, domain=_MICROSOFT, **attributes),
        ]
    return [node]


def _refer(model: Any, stored: bytes) -> None:
    """Point large tensors to where their bytes stand in the file of weights."""
    from onnx import TensorProto

    start = 0
    for tensor in model.graph.initializer:
        data = tensor.raw_data
        if len(data) < _INLINE:
            continue
        # Initialisers are serialised in order; should two hold the same bytes, either will do.
        at = stored.find(data, start)
        at = stored.find(data) if at < 0 else at
        start = at + len(data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        where = {"location": WEIGHTS_FILE, "offset": at, "length": len(data)}
        for key, value in where.items():
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
