"""The page: the mask canvas, one panel per module, and the shell that puts them together."""
