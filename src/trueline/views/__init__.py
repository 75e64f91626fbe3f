"""What a run shows: each module answers one kind of question about a recorded run, for checks, comparison and reports."""
