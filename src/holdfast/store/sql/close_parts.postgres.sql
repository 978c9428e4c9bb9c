-- Count rows of a scope came to nothing open (or have something open again), and steps of it ended
-- badly: the first of these is noted. (A workflow that stops at failures stops at a later one, too, if
-- a single step was resubmitted since.) Differs from SQLite in types.
UPDATE holdfast_scopes
SET body_open = body_open - :body::int, tail_open = tail_open - :tail::int,
    error_id = coalesce(error_id, :error_id::uuid)
WHERE scope_id = :scope_id::uuid
    AND (
        :body::int <> 0 OR :tail::int <> 0 OR error_id IS NULL
        OR (
            :error_id::uuid IS NOT NULL
            AND EXISTS (
                SELECT FROM holdfast_workflows AS whole
                WHERE whole.workflow_id = holdfast_scopes.workflow_id
                    AND whole.on_failure = 'fail_fast' AND whole.stopping IS NULL
            )
        )
    )
RETURNING workflow_id, body_open, tail_open, error_id, error_gate, ended_gate;
