"""Algebra on networks: the same function with fewer passes over its feature maps.

onnxruntime computes a convolution and an activation after it in one pass, if the activation is one node. The detector
and the layout network come with activations in pieces and with learned scales and shifts around them, each a pass of
its own; here they become one node again, and scales and shifts go into the weights of the convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import helper, numpy_helper

_Array = npt.NDArray[Any]


def simplified(model: Any) -> Any:
    """The network with every rule applied until none applies; changed in place.

    Exact up to rounding. Names of inputs and outputs stay.
    """
    graph = _Graph(model.graph)
    rules: tuple[Callable[[_Graph, Any], bool], ...] = (
        _hard_swish_of_clip,
        _hard_swish_of_sigmoid,
        _scale_and_shift_into_producer,
        _shift_before_scale,
        _scale_into_consumers,
        _shift_into_consumers,
        _gate_with_one,
    )
    while any(rule(graph, node) for node in graph.nodes() for rule in rules):
        pass
    graph.drop_unused()
    return model


class _Graph:
    """A graph with look-ups; they are made anew after each change, for graphs are small."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._outputs = {output.name for output in graph.output}
        self._fresh = 0
        self._look()

    def _look(self) -> None:
        self._constants = {tensor.name: tensor for tensor in self._graph.initializer}
        self._producers = {name: node for node in self._graph.node for name in node.output}
        self._consumers: dict[str, list[Any]] = {}
        for node in self._graph.node:
            for name in node.input:
                self._consumers.setdefault(name, []).append(node)

    def nodes(self) -> Iterator[Any]:
        return iter(list(self._graph.node))

    def constant(self, name: str) -> _Array | None:
        tensor = self._constants.get(name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def scalar(self, name: str) -> float | None:
        value = self.constant(name)
        return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None

    def producer(self, name: str) -> Any | None:
        return self._producers.get(name)

    def consumers(self, name: str) -> list[Any]:
        return self._consumers.get(name, [])

    def only_for(self, name: str, node: Any) -> bool:
        """Whether nobody but the node sees this value."""
        return name not in self._outputs and all(user is node for user in self.consumers(name))

    def inner(self, name: str) -> bool:
        return name not in self._outputs

    def add(self, value: _Array, like: str) -> str:
        self._fresh += 1
        name = f"{like}.simplified{self._fresh}"
        self._graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype=np.float32), name))
        return name

    def replace(self, old: list[Any], new: list[Any]) -> None:
        """Put nodes where the last of the old ones stood."""
        place = list(self._graph.node).index(old[-1])
        for offset, node in enumerate(new):
            self._graph.node.insert(place + 1 + offset, node)
        for node in old:
            self._graph.node.remove(node)
        self._look()

    def bypass(self, node: Any, given: str) -> None:
        """Take a node out; who read it reads `given`."""
        for user in self.consumers(node.output[0]):
            for place, name in enumerate(user.input):
                if name == node.output[0]:
                    user.input[place] = given
        self._graph.node.remove(node)
        self._look()

    def changed(self) -> None:
        self._look()

    def drop_unused(self) -> None:
        used = {name for node in self._graph.node for name in node.input} | self._outputs
        for tensor in [tensor for tensor in self._graph.initializer if tensor.name not in used]:
            self._graph.initializer.remove(tensor)


def _hard_swish_of_clip(graph: _Graph, node: Any) -> bool:
    """x * clip(x + 3, 0, 6) / 6."""
    if node.op_type != "Div" or graph.scalar(node.input[1]) != 6:
        return False
    product = graph.producer(node.input[0])
    if product is None or product.op_type != "Mul" or not graph.only_for(product.output[0], node):
        return False
    for x, clipped in (tuple(product.input), tuple(product.input)[::-1]):
        clip = graph.producer(clipped)
        if clip is None or clip.op_type != "Clip" or not graph.only_for(clipped, product):
            continue
        if (graph.scalar(clip.input[1]), graph.scalar(clip.input[2])) != (0, 6):
            continue
        shift = graph.producer(clip.input[0])
        if shift is None or shift.op_type != "Add" or not graph.only_for(shift.output[0], clip):
            continue
        if x in shift.input and 3 in [graph.scalar(name) for name in shift.input]:
            swish = helper.make_node("HardSwish", [x], [node.output[0]], name=f"{node.output[0]}.swish")
            graph.replace([shift, clip, product, node], [swish])
            return True
    return False


def _hard_swish_of_sigmoid(graph: _Graph, node: Any) -> bool:
    """x * HardSigmoid(x) with slope 1/6 and offset 1/2."""
    if node.op_type != "Mul":
        return False
    for x, gate in (tuple(node.input), tuple(node.input)[::-1]):
        sigmoid = graph.producer(gate)
        if sigmoid is None or sigmoid.op_type != "HardSigmoid" or sigmoid.input[0] != x:
            continue
        slope, offset = _attribute(sigmoid, "alpha", 0.2), _attribute(sigmoid, "beta", 0.5)
        if graph.only_for(gate, node) and abs(slope - 1 / 6) < 1e-6 and offset == 0.5:
            swish = helper.make_node("HardSwish", [x], [node.output[0]], name=f"{node.output[0]}.swish")
            graph.replace([sigmoid, node], [swish])
            return True
    return False


def _scale_and_shift_into_producer(graph: _Graph, node: Any) -> bool:
    """Conv, then times or plus a number: into the convolution's weights and bias."""
    found = _with_scalar(graph, node)
    if found is None:
        return False
    given, number = found
    conv = graph.producer(given)
    if conv is None or conv.op_type != "Conv" or not graph.only_for(given, node):
        return False
    weights = graph.constant(conv.input[1])
    bias = graph.constant(conv.input[2]) if len(conv.input) > 2 else np.zeros(1)
    if weights is None or bias is None:
        return False
    bias = np.broadcast_to(bias, (weights.shape[0],))
    if node.op_type == "Mul":
        _set(graph, conv, weights * number, bias * number)
    else:
        _set(graph, conv, weights, bias + number)
    conv.output[0] = node.output[0]
    graph.replace([node], [])
    return True


def _shift_before_scale(graph: _Graph, node: Any) -> bool:
    """s x + b before convolutions: s (x + b / s), so that the scale can go on into their weights."""
    found = _with_scalar(graph, node)
    users = graph.consumers(node.output[0])
    if found is None or node.op_type != "Mul" or len(users) != 1 or users[0].op_type != "Add":
        return False
    given, scale = found
    shift = users[0]
    other = _with_scalar(graph, shift)
    if other is None or scale == 0 or not graph.inner(node.output[0]) or not _only_convolutions(graph, shift):
        return False
    number = graph.add(np.array([other[1] / scale]), shift.output[0])
    factor = _scalar_name(graph, node)
    summed, out = node.output[0], shift.output[0]
    first = helper.make_node("Add", [given, number], [summed], name=f"{out}.first")
    graph.replace([node, shift], [first, helper.make_node("Mul", [summed, factor], [out], name=f"{out}.times")])
    return True


def _scale_into_consumers(graph: _Graph, node: Any) -> bool:
    """Times a number before convolutions: into their weights; 0 times it is still their padding."""
    found = _with_scalar(graph, node)
    if found is None or node.op_type != "Mul" or not _only_convolutions(graph, node):
        return False
    given, scale = found
    for user in graph.consumers(node.output[0]):
        weights = graph.constant(user.input[1])
        assert weights is not None
        user.input[1] = graph.add(weights * scale, user.input[1])
    graph.bypass(node, given)
    return True


def _shift_into_consumers(graph: _Graph, node: Any) -> bool:
    """Plus a number, then convolutions without padding: into their bias. Padding is with 0, after the shift."""
    found = _with_scalar(graph, node)
    users = graph.consumers(node.output[0])
    if found is None or node.op_type != "Add" or not _only_convolutions(graph, node) or any(map(_padded, users)):
        return False
    given, number = found
    for user in users:
        weights = graph.constant(user.input[1])
        bias = graph.constant(user.input[2]) if len(user.input) > 2 else np.zeros(1)
        assert weights is not None
        assert bias is not None
        _set(graph, user, weights, bias + number * weights.sum(axis=(1, 2, 3)))
    graph.bypass(node, given)
    return True


def _gate_with_one(graph: _Graph, node: Any) -> bool:
    """x + x * g, where g is one number a channel: x * (1 + g)."""
    if node.op_type != "Add":
        return False
    for x, gated in (tuple(node.input), tuple(node.input)[::-1]):
        product = graph.producer(gated)
        if product is None or product.op_type != "Mul" or not graph.only_for(gated, node):
            continue
        gates = [name for name in product.input if name != x]
        gate = graph.producer(gates[0]) if len(gates) == 1 else None
        if gate is not None and gate.op_type == "HardSigmoid":
            one = graph.add(np.array([1.0]), product.name or gated)
            more = f"{gates[0]}.more"
            graph.replace(
                [product, node],
                [
                    helper.make_node("Add", [gates[0], one], [more], name=more),
                    helper.make_node("Mul", [x, more], [node.output[0]], name=f"{more}.times"),
                ],
            )
            return True
    return False


def _with_scalar(graph: _Graph, node: Any) -> tuple[str, float] | None:
    """For a Mul or Add with one number: the other input, and the number."""
    if node.op_type not in {"Mul", "Add"}:
        return None
    for given, name in (tuple(node.input), tuple(node.input)[::-1]):
        number = graph.scalar(name)
        if number is not None and graph.constant(given) is None:
            return given, number
    return None


def _scalar_name(graph: _Graph, node: Any) -> str:
    return str(next(name for name in node.input if graph.scalar(name) is not None))


def _only_convolutions(graph: _Graph, node: Any) -> bool:
    """Whether the node's output goes into convolutions with constant weights and nowhere else."""
    users = graph.consumers(node.output[0])
    return (
        bool(users)
        and graph.inner(node.output[0])
        and all(
            user.op_type == "Conv" and user.input[0] == node.output[0] and graph.constant(user.input[1]) is not None
            for user in users
        )
    )


def _padded(conv: Any) -> bool:
    return any(_attribute(conv, "pads", [])) or _attribute(conv, "auto_pad", b"NOTSET") not in {b"NOTSET", b"VALID"}


def _attribute(node: Any, name: str, default: Any) -> Any:
    return next((helper.get_attribute_value(item) for item in node.attribute if item.name == name), default)


def _set(graph: _Graph, conv: Any, weights: _Array, bias: _Array) -> None:
    inputs = [conv.input[0], graph.add(weights, conv.input[1]), graph.add(bias, f"{conv.input[1]}.bias")]
    del conv.input[:]
    conv.input.extend(inputs)
    graph.changed()
