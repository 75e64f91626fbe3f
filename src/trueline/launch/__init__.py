"""Running an unmodified script under the recorder, and recording from inside a notebook."""

from trueline.launch.recording import Recording, record
from trueline.launch.script import Program, load_module, load_script, run_program

__all__ = ["Program", "Recording", "load_module", "load_script", "record", "run_program"]
