"""Two runs side by side: which layers belong together, where they first differ, and the setting that explains it."""
