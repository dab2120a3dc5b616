"""Parts of the SAM 3 family: contract of the graphs, phrases as tokens, the prompts, and the reading of the answer."""
