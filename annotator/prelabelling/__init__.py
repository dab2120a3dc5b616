"""The parts of a pre-labelling run: reading ahead, asking the model, counting; `annotator.prelabel` joins them."""
