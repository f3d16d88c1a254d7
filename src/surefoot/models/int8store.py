"""Weights stored in int8 and computed in float32: a quarter of the file, the same arithmetic.

Each large weight is replaced by int8 numbers and one float32 scale per output channel (per row, for an
embedding table). No arithmetic happens in int8, so a score does not depend on whether the processor has
int8 instructions, nor on the range of what else is in the batch, as it does with dynamic quantisation.

How the numbers become float32 again was measured on a 22.7M-parameter BERT with ONNX Runtime 1.32 (2 threads
of an AMD EPYC, pairs of 128 tokens; see ``training/README.md`` for the table):

* matrix weights go through ``DequantizeLinear``. With ``session.disable_quant_qdq`` = "1" ONNX Runtime folds
  it into a float32 weight when the session is built, and the fused graph runs as if it had been stored in
  float32, bit for bit. Without that switch it makes ``MatMulNBits`` of the products, which took 1.7 times as
  long and moved logits by up to 0.018: never load these files without it.
  (Arithmetic in int8, on request, has a graph of its own: :mod:`surefoot.models.int8graph`.)
* embedding tables stay int8 in memory: rows are gathered first and scaled then. Folding the table would
  cost more memory than all other weights together, for numbers that are equal bit for bit.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from surefoot.errors import missing_extra

__all__ = ["SESSION_CONFIG", "quantize", "store_int8"]

SESSION_CONFIG: Final = {"session.disable_quant_qdq": "1"}
"""Session configuration entries that a model stored by :func:`store_int8` must be loaded with."""

_SMALLEST = 16_384
"""Weights with fewer elements stay float32: nothing to save, and the last layer is the most sensitive."""

_WEIGHT_INPUT = {"MatMul": 1, "Gemm": 1, "Attention": 1, "Gather": 0}


def quantize(
    weight: npt.NDArray[np.float32], axis: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Symmetrical int8 with one scale per index of ``axis``.

    Args:
        weight: a matrix.
        axis: 0 for one scale per row, 1 for one per column.

    Returns:
        The int8 matrix, within -127 to 127, and the vector of scales; their product is within half a scale
        of ``weight``. Rows of zeros, or of numbers so small that their scale would be 0, get the scale 1.
    """
    scale = np.abs(weight).max(axis=1 - axis) / np.float32(127)
    scale = np.where(scale > 0, scale, np.float32(1)).astype(np.float32)
    rounded = np.rint(weight / np.expand_dims(scale, 1 - axis))
    return np.clip(rounded, -127, 127).astype(np.int8), scale


def store_int8(model: Any) -> Any:
    """Store the large weights of an ONNX model in int8.

    Only float32 matrices that feed exactly one kind of input (a matrix product, fused attention, or an
    embedding lookup along the first axis) are touched.

    Args:
        model: an ``onnx.ModelProto``; left as it is.

    Returns:
        A new ``onnx.ModelProto`` with the same inputs and outputs, to be loaded with
        :data:`SESSION_CONFIG`. The same input gives the same bytes.

    Raises:
        MissingExtraError: ``onnx`` is not installed.
    """
    with missing_extra("convert", purpose="store a model in int8"):
        import onnx
        from onnx import TensorProto, helper, numpy_helper

    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    chosen = _choose(graph, TensorProto.FLOAT)
    initializers, nodes = [], []
    for tensor in graph.initializer:
        if tensor.name not in chosen:
            initializers.append(tensor)
            continue
        axis, lookup = chosen[tensor.name]
        values, scale = quantize(numpy_helper.to_array(tensor), axis)
        if lookup:
            scale = scale[:, None]
        initializers.append(numpy_helper.from_array(values, tensor.name + ".int8"))
        initializers.append(numpy_helper.from_array(scale, tensor.name + ".scale"))
        if not lookup:
            nodes.append(
                helper.make_node(
                    "DequantizeLinear",
                    [tensor.name + ".int8", tensor.name + ".scale"],
                    [tensor.name],
                    name=tensor.name + ".dequantized",
                    axis=axis,
                )
            )
    for node in graph.node:
        table = node.input[0] if node.op_type == "Gather" else ""
        if table not in chosen:
            nodes.append(node)
            continue
        output = node.output[0]
        for part in ("int8", "scale"):
            looked_up = [f"{output}.{part}"]
            arguments = [f"{table}.{part}", node.input[1]]
            nodes.append(helper.make_node("Gather", arguments, looked_up, name=looked_up[0], axis=0))
        number = f"{output}.number"
        nodes.append(
            helper.make_node("Cast", [f"{output}.int8"], [number], name=number, to=TensorProto.FLOAT)
        )
        nodes.append(helper.make_node("Mul", [number, f"{output}.scale"], [output], name=output))
    del graph.initializer[:]
    del graph.node[:]
    graph.initializer.extend(initializers)
    graph.node.extend(nodes)
    return result


def _choose(graph: Any, float_type: int) -> dict[str, tuple[int, bool]]:
    """Name of each weight to store -> (axis of its scales, whether it is a lookup table)."""
    large = {
        tensor.name
        for tensor in graph.initializer
        if tensor.data_type == float_type
        and len(tensor.dims) == 2
        and tensor.dims[0] * tensor.dims[1] >= _SMALLEST
    }
    uses: dict[str, set[tuple[int, bool]]] = {}
    refused = {value.name for value in graph.output}
    for node in graph.node:
        for position, name in enumerate(node.input):
            if name not in large:
                continue
            if _WEIGHT_INPUT.get(node.op_type) != position:
                refused.add(name)
                continue
            attributes = {attribute.name: attribute.i for attribute in node.attribute}
            if node.op_type == "Gather":
                if attributes.get("axis", 0) != 0:
                    refused.add(name)
                use = (0, True)
            else:
                use = (0 if attributes.get("transB") else 1, False)
            uses.setdefault(name, set()).add(use)
        refused |= _inner_inputs(node)
    return {name: next(iter(use)) for name, use in uses.items() if len(use) == 1 and name not in refused}


def _inner_inputs(node: Any) -> set[str]:
    """Names that the bodies of ``If`` and ``Loop`` read from outside; left alone, being rare."""
    found: set[str] = set()
    for attribute in node.attribute:
        graphs = [attribute.g, *attribute.graphs]
        for graph in graphs:
            for inner in graph.node:
                found.update(inner.input)
                found |= _inner_inputs(inner)
    return found
