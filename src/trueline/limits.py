"""How much a file may ask of whoever reads it. All limits of all readers are here, and nowhere else.

A file of some kilobytes can describe gigabytes: a reader spends no more than what is set here, whatever the file says, and
then refuses it by name. The limits lie well above what frameworks write. docs/limits.md is made from this file.
"""

from __future__ import annotations

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# Text in one message: names and values out of a damaged file can be of any length.
MESSAGE_CHARACTERS = 400

# ## Files that are read as a whole

# `run.json`: a command line is 2 MiB at most, and what is decoded takes up to twenty times what it takes in the file.
RUN_DESCRIPTION_BYTES = 8 * MIB
# Lists of checksums beside a dataset, about 100 bytes for each file.
CHECKSUMS_BYTES = 16 * MIB
# Maps of names (`--map`): a name for each parameter.
MAP_BYTES = 16 * MIB
# Manifests: about 150 bytes for each file of a dataset.
MANIFEST_BYTES = 512 * MIB
# What second runs note in the folder of a run: changed files, with a line for each.
NOTES_BYTES = 64 * MIB
# `dump.json` of msprobe: about 500 bytes for each tensor of a dump.
DUMP_DESCRIPTION_BYTES = 64 * MIB
# One call in a `dump.json`: its tensors, described.
DUMP_CALL_BYTES = 1 * MIB
# Levels of a call's arguments within each other in a `dump.json`.
DUMP_DEPTH = 50

# ## Tensors

# Tensors of one file or folder. The largest checkpoints with the state of their optimizer hold some ten thousands.
TENSORS = 200_000
# What could not be read and is listed one by one.
PROBLEMS = 1_000
# Dimensions of a tensor, as in NumPy.
DIMENSIONS = 32
# Values of a tensor, so that its bytes can be counted in 64 bits.
VALUES = 1 << 58
# All tensors together may claim so many times the bytes of their file, as views of the same values and packed ones do.
CLAIMED_TIMES = 64
# They may always claim this much.
CLAIMED_BYTES = 4 * GIB
# Values of one tensor that repeats fewer stored ones, as `expand` makes it.
EXPANDED_VALUES = 1 << 24
# The description at the start of an `.npy` file: NumPy itself reads no more than 10,000 characters of it.
ARRAY_HEADER_BYTES = 64 * KIB
# The header of a `.safetensors` file, of which a tensor takes about 150 bytes. The format would allow 100 MB.
SAFETENSORS_HEADER_BYTES = 32 * MIB
# Pieces into which MindSpore slices one parameter, 512 MB each.
SLICES = 10_000

# ## Pickles of PyTorch

# Instructions; a tensor takes about forty of them.
PICKLE_INSTRUCTIONS = 3_000_000
# What the objects of a pickle take in memory, as it is estimated before they are made.
PICKLE_BYTES = 256 * MIB
# One text or number in a pickle.
PICKLE_ARGUMENT_BYTES = 32 * MIB
# Levels of dicts and lists within each other; a list can hold itself.
PICKLE_DEPTH = 100
# Places at which tensors, dicts and lists stand in each other: one object can stand at many.
PICKLE_PLACES = 500_000
# The same for numbers, texts and all else, which are only passed over.
PICKLE_ITEMS = 4_000_000
# Characters in the name of a tensor, of all the keys that lead to it.
NAME_CHARACTERS = 4_000
# Items of a tuple that is the key of a dict: its hash is made again for each use.
KEY_ITEMS = 16

# ## Zip archives (`.pth`, `.pt`, `.npz`) and packed texts

# The directory at the end of a zip, about 100 bytes for each tensor.
ZIP_DIRECTORY_BYTES = 16 * MIB
# What one packed member may become, ...
UNPACKED_BYTES = 128 * MIB
# ... or this many times its packed size, where that is more.
UNPACKED_TIMES = 8
# What a packed dataset may become, which is read piece by piece, ...
STREAMED_BYTES = 256 * MIB
# ... or this many times its packed size, where that is more.
STREAMED_TIMES = 200

# ## Records of runs

# Rows of one commit in a journal. A traced step of a large model takes some megabytes.
FRAME_BYTES = 64 * MIB
# The same where a row holds what no row should: lists in each other take fifty times their bytes.
ODD_FRAME_BYTES = 1 * MIB
# One value in a database.
DATABASE_VALUE_BYTES = 64 * MIB
# All values that one query gives may take so many times the bytes of the database: pages can stand in it several times.
DATABASE_TIMES = 4
# Instructions of SQLite's machine for each byte of the database: a query reads every row once, and sorts them.
DATABASE_INSTRUCTIONS_PER_BYTE = 20
# They may always be so many.
DATABASE_INSTRUCTIONS = 1_000_000

# ## Datasets

# Fields of a table. Each has its counts, of about 2 KiB and up to 200 KiB.
FIELDS = 65_536
# Fields of JSON objects, each row of which may bring others.
JSON_FIELDS = 4_000
# Rows times fields of JSON that are held at a time.
JSON_CELLS = 2_000_000
# One object or line of JSON, which takes up to twenty times as much in memory.
JSON_OBJECT_BYTES = 8 * MIB
# JSON that cannot be read piece by piece: an object of columns, or one that holds the list of samples.
JSON_WHOLE_BYTES = 32 * MIB
# Objects and lists in it.
JSON_WHOLE_OBJECTS = 1_000_000
# An image as it lies in its file. Larger ones are not decoded, nor ...
IMAGE_BYTES = 32 * MIB
# ... those of more pixels (JPEGs are decoded at an eighth of their size).
IMAGE_PIXELS = 1 << 25
