"""The short last layer answers as the full one, and knows when to ask it."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from docferry.errors import ModelError
from docferry_edge.models_build.tail import Gate, short_alphabet, shortened

ALPHABET = ("", *(chr(code) for code in range(0x4E00, 0x4E00 + 300)), *"abcdefghij", " ")
FEATURES = 12


def network(softmax="Softmax"):
    random = np.random.default_rng(2)
    weights = random.normal(size=(FEATURES, len(ALPHABET))).astype(np.float32)
    bias = random.normal(size=len(ALPHABET)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node("Add", ["m", "b"], ["a"]),
            helper.make_node(softmax, ["a"], ["y"]),
        ],
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "t", FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "t", "c"])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def both(x, gate):
    full = onnxruntime.InferenceSession(network().SerializeToString()).run(None, {"x": x})[0]
    model = shortened(network(), ALPHABET, gate)
    onnx.checker.check_model(model)
    classes, scores = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    return full, classes, scores


def some(count=(3, 17), scale=2.0):
    return (np.random.default_rng(5).normal(size=(*count, FEATURES)) * scale).astype(np.float32)


def test_with_every_column_in_doubt_it_is_the_full_layer():
    full, classes, scores = both(some(), Gate(score=2.0))
    assert np.array_equal(classes, full.argmax(axis=2))
    assert scores == pytest.approx(full.max(axis=2), abs=1e-6)


def test_with_no_column_in_doubt_only_the_short_alphabet_is_seen():
    _, classes, _ = both(some(), Gate(score=0.0, logit=-1e9))
    assert set(classes.ravel().tolist()) <= set(short_alphabet(ALPHABET))


def test_columns_of_another_script_are_seen_by_the_full_layer():
    model = network()
    weights = numpy_helper.to_array(model.graph.initializer[0])
    chinese = ALPHABET.index("一")
    x = np.stack([weights[:, chinese], weights[:, ALPHABET.index("c")]])[None] * 3
    full, classes, _ = both(x.astype(np.float32), Gate(score=0.99, logit=31.0))
    assert classes.tolist() == full.argmax(axis=2).tolist() == [[chinese, ALPHABET.index("c")]]


def test_the_short_alphabet_has_the_blank_the_space_and_no_ideograph():
    kept = [ALPHABET[number] for number in short_alphabet(ALPHABET)]
    assert kept == ["", *"abcdefghij", " "]


def test_a_network_with_another_end_is_refused():
    with pytest.raises(ModelError, match="LogSoftmax"):
        shortened(network("LogSoftmax"), ALPHABET)
