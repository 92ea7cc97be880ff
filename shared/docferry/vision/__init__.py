"""Pixels: decoding, detection, recognition, layout, orientation and crops (extra `vision`).

The only part of `docferry` that needs numpy, OpenCV, Pillow and onnxruntime; both ends use it.
"""

import os

# onnxruntime reports to Microsoft about every process and network since 1.29, and keeps a device id in the home
# directory (github.com/microsoft/onnxruntime/pull/27379). It decides while it is imported, so this stands before every
# import of it; what the administrator has set stands.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
