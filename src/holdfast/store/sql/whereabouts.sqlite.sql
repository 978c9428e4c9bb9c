-- Where a connection leads: the file. Differs from PostgreSQL, where one server has many databases.
SELECT file FROM pragma_database_list WHERE name = 'main';
