"""The two SQLite libraries, apsw and the standard one, behind one kind of connection."""
