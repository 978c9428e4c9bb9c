"""The SQLite libraries: apsw and the standard one, behind one seam, never mixed on a file."""
