"""The rewritten network computes what the given one does, with fewer passes."""

from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from docferry_edge.models_build.simplify import simplified


def network(nodes, **constants):
    random = np.random.default_rng(3)
    arrays = {
        "w3": random.normal(size=(4, 1, 3, 3)),
        "w1": random.normal(size=(4, 4, 1, 1)),
        "b": random.normal(size=4),
    }
    arrays |= {name: np.array(value) for name, value in constants.items()}
    graph = helper.make_graph(
        [helper.make_node(kind, given, [out], **more) for kind, given, out, more in nodes],
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 9, 7])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "c", "h", "w"])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def same_and_kinds(model):
    x = np.random.default_rng(4).normal(size=(1, 4, 9, 7)).astype(np.float32) * 3
    before = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    rewritten = simplified(model)
    onnx.checker.check_model(rewritten)
    after = onnxruntime.InferenceSession(rewritten.SerializeToString()).run(None, {"x": x})[0]
    assert after == pytest.approx(before, rel=1e-5, abs=1e-5)
    return dict(Counter(node.op_type for node in rewritten.graph.node))


CONV3 = {"group": 4, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
CONV1 = {"kernel_shape": [1, 1]}


def test_a_hard_swish_in_pieces_becomes_one_node():
    model = network(
        [
            ("Add", ["x", "three"], "a", {}),
            ("Clip", ["a", "zero", "six"], "c", {}),
            ("Mul", ["x", "c"], "m", {}),
            ("Div", ["m", "six"], "y", {}),
        ],
        three=3.0,
        zero=0.0,
        six=6.0,
    )
    assert same_and_kinds(model) == {"HardSwish": 1}


def test_a_hard_swish_by_its_gate_becomes_one_node():
    gate = {"alpha": 1 / 6, "beta": 0.5}
    model = network([("HardSigmoid", ["x"], "g", gate), ("Mul", ["g", "x"], "y", {})])
    assert same_and_kinds(model) == {"HardSwish": 1}


def test_another_slope_is_no_hard_swish():
    model = network([("HardSigmoid", ["x"], "g", {"alpha": 0.2}), ("Mul", ["g", "x"], "y", {})])
    assert same_and_kinds(model) == {"HardSigmoid": 1, "Mul": 1}


def test_scales_and_shifts_go_into_the_convolutions_on_both_sides():
    model = network(
        [
            ("Conv", ["x", "w3", "b"], "c", CONV3),
            ("Mul", ["s", "c"], "m", {}),
            ("Add", ["m", "t"], "a", {}),
            ("Relu", ["a"], "r", {}),
            ("Mul", ["r", "s2"], "m2", {}),
            ("Add", ["m2", "t2"], "a2", {}),
            ("Conv", ["a2", "w1"], "y", CONV1),
        ],
        s=[1.7],
        t=[-0.4],
        s2=[-0.6],
        t2=[0.9],
    )
    assert same_and_kinds(model) == {"Conv": 2, "Relu": 1}


def test_a_shift_before_a_padded_convolution_stays_where_its_border_needs_it():
    model = network(
        [("Mul", ["x", "s"], "m", {}), ("Add", ["m", "t"], "a", {}), ("Conv", ["a", "w3", "b"], "y", CONV3)],
        s=[0.3],
        t=[5.0],
    )
    assert same_and_kinds(model) == {"Add": 1, "Conv": 1}


def test_what_others_still_read_is_left_alone():
    model = network(
        [
            ("Conv", ["x", "w1", "b"], "c", CONV1),
            ("Mul", ["c", "s"], "m", {}),
            ("Add", ["c", "m"], "y", {}),
        ],
        s=[2.0],
    )
    assert same_and_kinds(model) == {"Conv": 1, "Mul": 1, "Add": 1}


def test_a_gate_with_a_way_around_it_takes_one_pass():
    model = network(
        [
            ("GlobalAveragePool", ["x"], "p", {}),
            ("HardSigmoid", ["p"], "g", {}),
            ("Mul", ["x", "g"], "m", {}),
            ("Add", ["x", "m"], "y", {}),
        ]
    )
    assert same_and_kinds(model) == {"GlobalAveragePool": 1, "HardSigmoid": 1, "Add": 1, "Mul": 1}
