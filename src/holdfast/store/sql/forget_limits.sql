-- Rules that say nothing, and of which no code did.
DELETE FROM holdfast_limits WHERE declared IS NULL AND chosen IS NULL AND seen IS NULL;
