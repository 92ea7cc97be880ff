"""Building faster models from the pinned originals, on a development machine (`docferry models build`).

Needs `onnx` (extra `dev`); a kiosk installs the finished bundle and never imports this package.
"""

# onnxruntime's reports home are switched off there, before it is imported here.
import docferry.vision  # noqa: F401
