"""Fitting calibrations on the device or a development machine: truths, corrections, labels, the fit, its commands."""
