"""Protocols whose parameters are estimated on calibration rows, and `harness fit`, which estimates them."""
