"""Two runs, checkpoints or folders of tensors side by side: pair what belongs together, measure how far it is apart, find where
that begins, and say why."""
