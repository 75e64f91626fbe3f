"""Findings and runs made readable: for the terminal, and as JSON."""
