"""An examination of the database and of whoever works on it: measured, judged, reported."""
