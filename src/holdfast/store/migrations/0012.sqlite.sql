-- Version 12: limits that two versions of the code declare.

-- JSON: the digests of what code has ever declared of this task, so that an old one does not come
-- back by itself.
ALTER TABLE holdfast_limits ADD COLUMN seen TEXT;

-- JSON: the tasks that its code knows, each with the digest of its limits.
ALTER TABLE holdfast_workers ADD COLUMN limits TEXT;
