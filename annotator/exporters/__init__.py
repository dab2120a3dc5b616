"""Export formats: one public module each, with a descriptor `EXPORTER`."""
