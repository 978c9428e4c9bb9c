-- What the library says about the file, by name, as text. Differs from PostgreSQL: other facts.
SELECT 'version', sqlite_version()
UNION ALL SELECT 'journal_mode', journal_mode FROM pragma_journal_mode
UNION ALL SELECT 'pages', CAST(page_count AS TEXT) FROM pragma_page_count
UNION ALL SELECT 'free_pages', CAST(freelist_count AS TEXT) FROM pragma_freelist_count
UNION ALL SELECT 'page_bytes', CAST(page_size AS TEXT) FROM pragma_page_size;
