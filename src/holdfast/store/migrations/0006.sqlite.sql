-- Counters over time, depths over time, and the record of what operators do.
-- Differs from PostgreSQL in its types, and in how columns are added.

-- wait_NN and run_NN: how many runs waited, and took, up to the bound NN of `core/statistics.py`.
ALTER TABLE holdfast_stats ADD COLUMN sent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN stalled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN expired INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN snoozed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_00 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_01 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_02 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_03 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_04 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_05 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_06 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_07 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_08 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_09 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_10 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_11 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_12 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_13 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_14 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN wait_15 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_00 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_01 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_02 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_03 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_04 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_05 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_06 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_07 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_08 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_09 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_10 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_11 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_12 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_13 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_14 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_stats ADD COLUMN run_15 INTEGER NOT NULL DEFAULT 0;

-- What was in holdfast_stats, added up: once for each minute, hour and day, and once for ever.
CREATE TABLE holdfast_stats_series (
    level      TEXT NOT NULL CHECK (level IN ('minute', 'hour', 'day', 'ever')),
    at         INTEGER NOT NULL,
    queue_name TEXT NOT NULL,
    task_name  TEXT NOT NULL,
    sent        INTEGER NOT NULL DEFAULT 0,
    completed   INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    cancelled   INTEGER NOT NULL DEFAULT 0,
    stalled     INTEGER NOT NULL DEFAULT 0,
    expired     INTEGER NOT NULL DEFAULT 0,
    dropped     INTEGER NOT NULL DEFAULT 0,
    retried     INTEGER NOT NULL DEFAULT 0,
    snoozed     INTEGER NOT NULL DEFAULT 0,
    interrupted INTEGER NOT NULL DEFAULT 0,
    other       INTEGER NOT NULL DEFAULT 0,
    wait_us     INTEGER NOT NULL DEFAULT 0,
    run_us      INTEGER NOT NULL DEFAULT 0,
    wait_00     INTEGER NOT NULL DEFAULT 0,
    wait_01     INTEGER NOT NULL DEFAULT 0,
    wait_02     INTEGER NOT NULL DEFAULT 0,
    wait_03     INTEGER NOT NULL DEFAULT 0,
    wait_04     INTEGER NOT NULL DEFAULT 0,
    wait_05     INTEGER NOT NULL DEFAULT 0,
    wait_06     INTEGER NOT NULL DEFAULT 0,
    wait_07     INTEGER NOT NULL DEFAULT 0,
    wait_08     INTEGER NOT NULL DEFAULT 0,
    wait_09     INTEGER NOT NULL DEFAULT 0,
    wait_10     INTEGER NOT NULL DEFAULT 0,
    wait_11     INTEGER NOT NULL DEFAULT 0,
    wait_12     INTEGER NOT NULL DEFAULT 0,
    wait_13     INTEGER NOT NULL DEFAULT 0,
    wait_14     INTEGER NOT NULL DEFAULT 0,
    wait_15     INTEGER NOT NULL DEFAULT 0,
    run_00      INTEGER NOT NULL DEFAULT 0,
    run_01      INTEGER NOT NULL DEFAULT 0,
    run_02      INTEGER NOT NULL DEFAULT 0,
    run_03      INTEGER NOT NULL DEFAULT 0,
    run_04      INTEGER NOT NULL DEFAULT 0,
    run_05      INTEGER NOT NULL DEFAULT 0,
    run_06      INTEGER NOT NULL DEFAULT 0,
    run_07      INTEGER NOT NULL DEFAULT 0,
    run_08      INTEGER NOT NULL DEFAULT 0,
    run_09      INTEGER NOT NULL DEFAULT 0,
    run_10      INTEGER NOT NULL DEFAULT 0,
    run_11      INTEGER NOT NULL DEFAULT 0,
    run_12      INTEGER NOT NULL DEFAULT 0,
    run_13      INTEGER NOT NULL DEFAULT 0,
    run_14      INTEGER NOT NULL DEFAULT 0,
    run_15      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (level, at, queue_name, task_name)
) STRICT, WITHOUT ROWID;

-- How many tasks were in each queue: each minute, and the most of each hour.
CREATE TABLE holdfast_depths (
    level      TEXT NOT NULL CHECK (level IN ('minute', 'hour')),
    at         INTEGER NOT NULL,
    queue_name TEXT NOT NULL,
    pending    INTEGER NOT NULL,
    scheduled  INTEGER NOT NULL,
    claimed    INTEGER NOT NULL,
    running    INTEGER NOT NULL,
    dead       INTEGER NOT NULL,
    oldest_us  INTEGER NOT NULL,
    PRIMARY KEY (level, at, queue_name)
) STRICT, WITHOUT ROWID;

-- Reserved by the first migration, and never used until now.
DROP TABLE holdfast_audit;
CREATE TABLE holdfast_audit (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    origin  TEXT,
    verb    TEXT NOT NULL,
    subject TEXT NOT NULL,
    filter  TEXT,
    count   INTEGER NOT NULL,
    detail  TEXT
) STRICT;
