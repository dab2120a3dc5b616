"""What ONNX Runtime needs on a device other than the CPU."""
