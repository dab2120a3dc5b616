"""How each picture format is opened; `engines.images` is the public door and the only importer."""
