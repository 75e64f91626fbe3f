-- One SQLite file per rank: <run directory>/rank<N>.sqlite. Format version: store/format.py, in `meta` under 'format'.
-- JSON columns hold UTF-8 JSON text. SQLite would keep NaN as NULL: step.loss and step.grad_norm hold
-- the text 'nan' instead, and tensor_stat counts NaN in a column of its own. While a run is
-- recorded its rows are in rank<N>.journal (store/journal.py), with the values of each row in the order of the columns here.
-- The meaning of every column is documented with the classes of model/run.py that the reader makes of the rows.

-- Keys: `format`, `framework`, `framework_version`, `ended`; `recorded`, in which ways ("eager", "compiled"), and `unseen`, what
-- could not be watched because it was compiled (JSON arrays, see Run.unseen). Operations and loss calls of compiled steps are
-- those that the compiler tells of, at the step that compiled them; their loss calls have no values.
-- `failed_watches`: what failed while it was recorded (a JSON array, see model.FailedWatch).
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT
);

-- Lines of the user's code, each stored once. `source` is the text of the line when the run was made.
CREATE TABLE location (
    id INTEGER PRIMARY KEY,
    file TEXT NOT NULL,
    line INTEGER NOT NULL,
    function TEXT,
    source TEXT
);

-- The trees of every module that was called from outside of any other module (root modules).
CREATE TABLE module (
    id INTEGER PRIMARY KEY,
    root INTEGER NOT NULL,
    path TEXT NOT NULL,
    root_name TEXT NOT NULL,      -- the variable that held the root, or its class name
    type TEXT NOT NULL,
    kind TEXT NOT NULL,
    same_as INTEGER,
    built INTEGER,                -- location
    called INTEGER,               -- location
    settings TEXT NOT NULL        -- JSON object
);

CREATE TABLE parameter (
    id INTEGER PRIMARY KEY,
    root INTEGER NOT NULL,
    module INTEGER NOT NULL,
    path TEXT NOT NULL,
    shape TEXT NOT NULL,          -- JSON array
    dtype TEXT NOT NULL,
    trainable INTEGER NOT NULL,
    buffer INTEGER NOT NULL,
    same_as INTEGER,
    initialised INTEGER,          -- location
    loaded INTEGER                -- location
);

CREATE TABLE optimizer (
    id INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    built INTEGER                 -- location
);

CREATE TABLE optimizer_parameter (
    optimizer INTEGER NOT NULL,
    grp INTEGER NOT NULL,
    position INTEGER NOT NULL,
    parameter INTEGER,            -- NULL: owned by no module that was called
    shape TEXT NOT NULL,
    steps INTEGER NOT NULL,
    without_gradient INTEGER NOT NULL,
    PRIMARY KEY (optimizer, grp, position)
);

-- Written when a value changes: the value holds from `step` on.
CREATE TABLE hyperparameter (
    step INTEGER NOT NULL,
    optimizer INTEGER NOT NULL,
    grp INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,          -- JSON
    PRIMARY KEY (step, optimizer, grp, name)
);

CREATE TABLE loader (
    id INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL,
    length INTEGER,
    batch_size INTEGER,
    sampler TEXT,
    built INTEGER,                -- location
    settings TEXT NOT NULL        -- JSON object
);

CREATE TABLE step (
    id INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,         -- of the optimizer step that ended it
    optimizer INTEGER,
    loss REAL,                    -- 'nan' for NaN
    grad_norm REAL,
    finite INTEGER NOT NULL,      -- loss and gradient norm are finite numbers
    seconds REAL NOT NULL,        -- wall time since the end of the previous step
    wait REAL NOT NULL,           -- of which waiting for loaders
    sampled INTEGER NOT NULL,
    backwards INTEGER NOT NULL,
    cleared INTEGER,
    with_gradient INTEGER,
    without_gradient INTEGER
);

-- detail of `backward`: {"of": reference of the tensor as in op.inputs, "shape": [...], "leaf": bool, "create_graph": bool,
--   "carried": [optimizer ids whose gradients were not empty when it started], "function": autograd node}
-- detail of `gradient_of_gradient`: {"create_graph": bool, and where it is true on a traced step: "of": reference of the first
--   tensor that was derived, "weighted_by": reference of the first of grad_outputs}
-- detail of `scheduler_step`: {"type": class or function, "initial": bool (made while it is built), "by_optimizer": true where
--   the optimizer goes through a list or a schedule by itself: told once, its rates are in `hyperparameter`}
-- detail of `scale`: {"product": reference of the scaled loss, on a traced step; "taken_out": what the optimizer divides by,
--   where that is its task; "compiled": true inside of a compiled step, where the order is not seen}
-- detail of `clip`: {"kind": "norm" | "value", "limit": x, "norm_type": p}
-- detail of `load`: {"keys": n, "missing": [the first 50], "unexpected": [...], "missing_count": n, "unexpected_count": n,
--   "changed": n tensors whose content changed, "content": {key: digest of a matrix that was loaded}, "of": class}
-- detail of `init_after_load`: {"shape": [...], "by": function, "matrix": bool}
-- detail of `seed`: {"library": "torch" | "mindspore" | "mindspore.dataset" | "numpy" | "random", "seed": n}
-- detail of `optimizer_step`: {"clipped_norm": x, "norm": x} when gradients changed between clipping and the step
CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    step INTEGER NOT NULL,
    kind TEXT NOT NULL,
    subject INTEGER,
    location INTEGER,
    value REAL,
    detail TEXT                   -- JSON object or NULL
);

CREATE TABLE root_call (
    seq INTEGER PRIMARY KEY,
    step INTEGER NOT NULL,
    module INTEGER NOT NULL,
    location INTEGER,
    training INTEGER NOT NULL,
    grad INTEGER NOT NULL,
    loss INTEGER NOT NULL,
    dropout INTEGER NOT NULL,
    dropout_active INTEGER NOT NULL,
    batch_norm INTEGER NOT NULL,
    batch_norm_batch INTEGER NOT NULL,
    batch INTEGER,
    fed_by INTEGER
);

CREATE TABLE batch (
    seq INTEGER PRIMARY KEY,
    step INTEGER NOT NULL,
    loader INTEGER,
    epoch INTEGER,
    position INTEGER,
    wait REAL NOT NULL,
    size INTEGER NOT NULL,
    fingerprints BLOB NOT NULL,   -- big-endian unsigned 64-bit, one per sample
    targets BLOB,                 -- little-endian float64, one per sample
    target_kind TEXT,             -- 'class' or 'value'
    fields TEXT,                  -- JSON array; NULL: as in the source's previous batch
    nonfinite TEXT                -- JSON array; NULL: all values of the batch are finite numbers
);

-- Arrays are little-endian float64, one per feature.
CREATE TABLE field_stat (
    seq INTEGER NOT NULL,         -- of the batch or root call
    step INTEGER NOT NULL,
    owner TEXT NOT NULL,          -- 'batch' or 'call'
    field TEXT NOT NULL,
    shape TEXT NOT NULL,
    dtype TEXT NOT NULL,
    axis INTEGER,
    count INTEGER NOT NULL,
    low BLOB NOT NULL, high BLOB NOT NULL, mean BLOB NOT NULL, std BLOB NOT NULL,
    nan INTEGER NOT NULL,
    inf INTEGER NOT NULL,
    spikes TEXT,                  -- JSON array or NULL
    padding TEXT                  -- JSON object or NULL
);

CREATE TABLE score (
    seq INTEGER PRIMARY KEY,
    step INTEGER NOT NULL,
    batch INTEGER NOT NULL,       -- seq
    training INTEGER NOT NULL,
    labels BLOB NOT NULL,         -- little-endian int32, one per sample
    margins BLOB NOT NULL,        -- little-endian float32
    predicted BLOB NOT NULL       -- little-endian int32
);

-- Content of a few training samples, for the review sheet.
CREATE TABLE sample (
    batch INTEGER NOT NULL,       -- seq
    row INTEGER NOT NULL,
    label INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,    -- 16 hexadecimal digits
    dtype TEXT NOT NULL,          -- 'float32', 'int64' (little-endian) or 'text' (UTF-8)
    shape TEXT NOT NULL,          -- JSON array
    content BLOB NOT NULL
);

CREATE TABLE loss_call (
    seq INTEGER PRIMARY KEY,
    step INTEGER NOT NULL,
    kind TEXT NOT NULL,
    location INTEGER,
    grad INTEGER NOT NULL,
    value REAL,
    input TEXT NOT NULL,          -- JSON object
    target TEXT NOT NULL,         -- JSON object
    settings TEXT NOT NULL        -- JSON object
);

CREATE TABLE op (
    seq INTEGER PRIMARY KEY,
    step INTEGER NOT NULL,
    name TEXT NOT NULL,
    module INTEGER,
    location INTEGER,
    inputs TEXT NOT NULL,         -- JSON array of references
    outputs TEXT NOT NULL,        -- JSON array of objects
    settings TEXT NOT NULL,       -- JSON object
    used INTEGER NOT NULL
);

CREATE TABLE tensor_stat (
    step INTEGER NOT NULL,
    role TEXT NOT NULL,
    subject INTEGER NOT NULL,
    position INTEGER NOT NULL,    -- which of several outputs, fields or calls
    shape TEXT NOT NULL,
    dtype TEXT NOT NULL,
    min REAL, max REAL, mean REAL, std REAL, l2 REAL, abs_mean REAL, zero_share REAL,
    nan INTEGER NOT NULL,
    inf INTEGER NOT NULL,
    sketch BLOB,                  -- 64 little-endian float32, or NULL
    dead REAL,
    weight_l2 REAL
);
CREATE INDEX tensor_stat_by_subject ON tensor_stat (role, subject, step);

CREATE TABLE snapshot (
    step INTEGER NOT NULL,
    parameter INTEGER NOT NULL,
    trainable INTEGER NOT NULL,
    optimizer INTEGER,
    gradient TEXT,
    digest TEXT NOT NULL,
    row_spread REAL
);
CREATE INDEX snapshot_by_parameter ON snapshot (parameter, step);
