"""Model families, one per module; each defines `FAMILY`."""
