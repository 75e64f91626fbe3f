"""Two runs side by side: pair their layers, measure how far they are apart, find where that begins, and say why."""
