"""Pixels: decoding, detection, recognition, layout, orientation and crops (extra `vision`).

The only part of `docferry` that needs numpy, OpenCV, Pillow and onnxruntime; both ends use it.
"""
