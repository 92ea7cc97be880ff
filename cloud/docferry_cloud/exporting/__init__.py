"""Files made of a finished analysis: what the Export call gives."""
