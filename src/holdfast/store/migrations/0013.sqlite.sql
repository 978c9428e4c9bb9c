-- Version 13: what each child of a worker uses.

-- JSON: its children, each with its name, pid, memory and processor; as of when it was last seen.
ALTER TABLE holdfast_workers ADD COLUMN children TEXT;
