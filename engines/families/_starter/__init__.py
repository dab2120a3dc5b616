"""Parts of the starter family: detector, outlines, vocabulary, colours."""
