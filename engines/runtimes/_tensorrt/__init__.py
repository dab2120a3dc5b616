"""What the two TensorRT runtimes have in common."""
