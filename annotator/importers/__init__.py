"""Import formats, one per module; each defines `IMPORTER`."""
