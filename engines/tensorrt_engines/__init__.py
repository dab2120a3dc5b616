"""Engines of TensorRT and TensorRT for RTX: what they are made from, building them, and the folder that keeps them."""
