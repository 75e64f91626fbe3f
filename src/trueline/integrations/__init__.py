"""Recording from inside of other tools' training loops: one file per tool."""
