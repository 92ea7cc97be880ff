"""A cheaper last layer for the recogniser: few classes for all columns, all classes for the few columns in doubt.

The last layer scores 18,710 classes for every column of 8 pixels, and what it writes is larger than everything before
it together. Nearly every column of a Latin page is blank or one of some hundred letters, and clearly so. The rewritten
layer scores those first; only columns where the best of them is not sure are scored against the whole alphabet.
Instead of probabilities it gives, for every column, the best class and its score, so little leaves the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from docferry.errors import ModelError

_ALSO = frozenset("’‘“”…–—•·€×（），。：；、￥℃√")
"""Common beyond the Latin blocks, among them the full-width forms the network likes."""


@dataclass(frozen=True, slots=True)
class Gate:
    """When the short alphabet's answer stands.

    Attributes:
        score: Softmax over the short alphabet must give its best class at least this; with the full alphabet the
            score can only be lower.
        logit: And the best class's logit must be at least this; columns of a script that is not in the short
            alphabet can look sure only because all its logits are low.
    """

    score: float = 0.99
    logit: float = 12.0


@dataclass(frozen=True, slots=True)
class _Tail:
    """The nodes from the last features to the probabilities, and their weights `(features, classes)`."""

    nodes: tuple[Any, ...]
    features: str
    channels_first: bool
    weights: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]


def short_alphabet(alphabet: Sequence[str]) -> list[int]:
    """Classes scored for every column: the blank, Latin letters, digits, marks, and the space."""
    return [
        number
        for number, letter in enumerate(alphabet)
        if not letter or (len(letter) == 1 and (ord(letter) < 0x250 or letter in _ALSO))
    ]


def shortened(model: Any, alphabet: Sequence[str], gate: Gate | None = None) -> Any:
    """The network with outputs `classes` (int64) and `scores` (float32), both `(lines, columns)`.

    Args:
        model: A folded recogniser (`onnx.ModelProto`); changed in place.
        alphabet: A letter a class; the blank is empty.
        gate: When the short alphabet's answer stands; the defaults when None.

    Raises:
        ModelError: The network does not end in MatMul, Add, Softmax.
    """
    gate = gate or Gate()
    tail = _tail_of(model)
    short = np.array(short_alphabet(alphabet), dtype=np.int64)
    graph = model.graph
    for node in tail.nodes:
        graph.node.remove(node)
    dropped = {name for node in tail.nodes for name in node.input}
    used = {name for node in graph.node for name in node.input}
    for tensor in [tensor for tensor in graph.initializer if tensor.name in dropped - used]:
        graph.initializer.remove(tensor)
    size = len(tail.weights)
    constants: dict[str, npt.NDArray[Any]] = {
        "tail.short_weights": np.ascontiguousarray(tail.weights[:, short]),
        "tail.short_bias": tail.bias[short],
        "tail.short_classes": short,
        "tail.weights": np.ascontiguousarray(tail.weights),
        "tail.bias": tail.bias,
        "tail.rows": np.array([-1, size], dtype=np.int64),
        "tail.least_score": np.array(gate.score, dtype=np.float32),
        "tail.least_logit": np.array(gate.logit, dtype=np.float32),
        "tail.flat": np.array([-1], dtype=np.int64),
    }
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    graph.node.extend(_nodes(tail))
    del graph.output[:]
    graph.output.extend(
        [
            helper.make_tensor_value_info("classes", onnx.TensorProto.INT64, ["lines", "columns"]),
            helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["lines", "columns"]),
        ]
    )
    return model


def _nodes(tail: _Tail) -> list[Any]:
    node = helper.make_node
    rows = "tail.given" if tail.channels_first else tail.features
    turn = [node("Transpose", [tail.features], ["tail.given"], perm=[0, 2, 1])] if tail.channels_first else []
    return [
        *turn,
        node("Shape", [rows], ["tail.shape"], start=0, end=2),
        node("Reshape", [rows, "tail.rows"], ["tail.x"]),
        *_best("tail.x", "tail.short_weights", "tail.short_bias", "tail.s"),
        node("Gather", ["tail.short_classes", "tail.s.class"], ["tail.s.known"], axis=0),
        node("Less", ["tail.s.score", "tail.least_score"], ["tail.unsure"]),
        node("Less", ["tail.s.logit", "tail.least_logit"], ["tail.faint"]),
        node("Or", ["tail.unsure", "tail.faint"], ["tail.doubt2"]),
        node("Reshape", ["tail.doubt2", "tail.flat"], ["tail.doubt"]),
        node("NonZero", ["tail.doubt"], ["tail.places0"]),
        node("Transpose", ["tail.places0"], ["tail.places"], perm=[1, 0]),
        node("Compress", ["tail.x", "tail.doubt"], ["tail.y"], axis=0),
        *_best("tail.y", "tail.weights", "tail.bias", "tail.f"),
        *[
            part
            for kind, given in (("class", "tail.s.known"), ("score", "tail.s.score"))
            for part in (
                node("Reshape", [given, "tail.flat"], [f"tail.{kind}.short"]),
                node("Reshape", [f"tail.f.{kind}", "tail.flat"], [f"tail.{kind}.full"]),
                node(
                    "ScatterND",
                    [f"tail.{kind}.short", "tail.places", f"tail.{kind}.full"],
                    [f"tail.{kind}.all"],
                ),
            )
        ],
        node("Reshape", ["tail.class.all", "tail.shape"], ["classes"]),
        node("Reshape", ["tail.score.all", "tail.shape"], ["scores"]),
    ]


def _best(rows: str, weights: str, bias: str, name: str) -> list[Any]:
    """Best class, its logit and its softmax score for each row."""
    node = helper.make_node
    return [
        node("Gemm", [rows, weights, bias], [f"{name}.logits"]),
        node("ArgMax", [f"{name}.logits"], [f"{name}.class"], axis=1, keepdims=1),
        node("ReduceMax", [f"{name}.logits"], [f"{name}.logit"], axes=[1], keepdims=1),
        # onnxruntime computes ReduceLogSumExp number by number; its Softmax is vectorised.
        node("Softmax", [f"{name}.logits"], [f"{name}.shares"], axis=1),
        node("ReduceMax", [f"{name}.shares"], [f"{name}.score"], axes=[1], keepdims=1),
    ]


def _tail_of(model: Any) -> _Tail:
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    *_, product, added, softmax = model.graph.node
    kinds = (product.op_type, added.op_type, softmax.op_type)
    if kinds not in {("MatMul", "Add", "Softmax"), ("FusedMatMul", "Add", "Softmax")}:
        raise ModelError(
            f"the recogniser ends in {', '.join(kinds)}, not MatMul, Add, Softmax",
            remedy="build from the model in models.toml",
        )
    flags = {attribute.name: helper.get_attribute_value(attribute) for attribute in product.attribute}
    if any(flags.get(name) for name in ("transB", "transBatchA", "transBatchB")) or flags.get("alpha", 1) != 1:
        raise ModelError("the recogniser's last layer is transposed", remedy="build from the model in models.toml")
    weights = numpy_helper.to_array(constants[product.input[1]]).astype(np.float32)
    bias_name = next(name for name in added.input if name in constants)
    return _Tail(
        nodes=(product, added, softmax),
        features=product.input[0],
        channels_first=bool(flags.get("transA")),
        weights=weights,
        bias=numpy_helper.to_array(constants[bias_name]).astype(np.float32).reshape(-1),
    )
