-- Who holds these tasks and leases: the transaction that a row was last marked by, if it is still
-- open. Those without a row in the answer's first column have kept a transaction open in which they
-- wrote or locked tasks: one of them must be it where the mark does not tell (several transactions
-- share the row, or it is a row that was inserted and not committed).
-- Differs from SQLite, where there are no row locks.
WITH held AS MATERIALIZED (
    SELECT id AS row_id, xmax AS holder FROM holdfast_tasks WHERE id = ANY (:ids::uuid[])
    UNION ALL
    SELECT token, xmax FROM holdfast_leases WHERE token = ANY (:tokens::uuid[])
), marked AS MATERIALIZED (
    SELECT held.row_id, lock.pid, prepared.gid
    FROM held
    JOIN pg_locks AS lock
        ON lock.locktype = 'transactionid' AND lock.transactionid = held.holder
            AND lock.mode = 'ExclusiveLock' AND lock.granted
    LEFT JOIN pg_prepared_xacts AS prepared ON prepared.transaction = held.holder
), suspected AS MATERIALIZED (
    SELECT DISTINCT NULL::uuid, lock.pid, NULL::text
    FROM pg_locks AS lock
    WHERE lock.locktype = 'relation' AND lock.relation = 'holdfast_tasks'::regclass
        AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND lock.mode IN ('RowShareLock', 'RowExclusiveLock') AND lock.granted
        AND lock.pid IS NOT NULL
)
SELECT
    holder.row_id, holder.pid, holder.gid, activity.usename::text, activity.application_name,
    activity.state, activity.xact_start
FROM (SELECT * FROM marked UNION ALL SELECT * FROM suspected) AS holder (row_id, pid, gid)
LEFT JOIN pg_stat_activity AS activity ON activity.pid = holder.pid
WHERE holder.row_id IS NOT NULL OR activity.xact_start < :now - interval '2 seconds'
ORDER BY activity.xact_start NULLS LAST, holder.pid;
