"""Opening networks: the one place that chooses onnxruntime's options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from docferry.errors import ModelError

Tensor = npt.NDArray[np.float32]


class Network:
    """One ONNX network with one input, ready to run.

    Safe to call from several threads at once: onnxruntime keeps no state between runs.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._input: str = session.get_inputs()[0].name

    @property
    def metadata(self) -> Mapping[str, str]:
        """The key-value pairs stored in the file, such as the recogniser's `character`."""
        pairs: Mapping[str, str] = self._session.get_modelmeta().custom_metadata_map
        return pairs

    def run(self, tensor: Tensor) -> list[Tensor]:
        """All outputs for one input tensor, in the file's order."""
        outputs: list[Tensor] = self._session.run(None, {self._input: tensor})
        return outputs


def open_network(path: Path, *, threads: int) -> Network:
    """Load a network on the CPU.

    Args:
        path: An ONNX file.
        threads: Threads one run may use, at least 1.

    Raises:
        ModelError: The file is missing or is no network onnxruntime can run.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    # An arena for each network keeps its largest page's buffers for ever, and a memory pattern is kept for every new
    # input shape; page sizes vary, and a kiosk's memory is small. One arena for all is used where the program made
    # one: see `memory.bound_memory`.
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.enable_mem_pattern = False
    # Spinning threads burn a core between two pages and fight the other networks for it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Its warnings are about the exporter's shape annotations, which no reader can act on.
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    # onnxruntime's errors share no base class of their own.
    except Exception as error:
        raise ModelError(
            f"{path}: onnxruntime cannot load this model: {error}",
            remedy="run `docferry models verify`, then `docferry models pull`",
            file=str(path),
        ) from error
    return Network(session)
