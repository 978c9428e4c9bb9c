"""The SQLite engine: one file, many processes, nothing to set up.

Which module keeps what:

    store           an operation is one transaction; its caller never sees "database is locked"
    turns           of all threads of all processes one writes at a time, and none waits forever
    connections     a connection is used by one thread; none is open across a fork or a handover
    opener          every open connection has the same settings, and is counted in a use of its file
    drivers         no exception of a library escapes; both behave alike
    one_library     while one SQLite library has the file open here, we do not use the other
      .handover       the states of a file, and who waits for whom
      .connect_hook   a `sqlite3.connect` of the program is seen before it opens the file
      .open_files     looking what is open, without opening it
      .process_locks  other processes see this one in the file, whatever the program does with it
      .autocheckpoint a connection of the program does not checkpoint beside a writer of ours
    checkpoint      the WAL stays short, and no commit is lost by copying it
    clock           time never goes back for anyone who shares the file
    doorbell        whoever waits is woken by a commit
    commit_watch    or notices it: when the kernel tells of a write, or by looking
    file_events     what the kernel tells of a file
    database_file   no file is used where it would not be safe, and none is made over another
    side_file       nothing is trusted that others may have put beside the database
    faults          each result code is an error of ours that says what to do
"""
