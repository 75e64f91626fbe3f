"""Comparing two sides: pair what belongs together, measure how far it is apart, and say what has no counterpart."""
