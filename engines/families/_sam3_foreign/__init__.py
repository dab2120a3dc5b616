"""SAM 3 in ONNX files that others have exported: what their kinds have in common."""
