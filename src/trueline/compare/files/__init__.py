"""Two checkpoints, files or folders of tensors side by side."""
