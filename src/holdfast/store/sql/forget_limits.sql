-- Rules that say nothing.
DELETE FROM holdfast_limits WHERE declared IS NULL AND chosen IS NULL;
