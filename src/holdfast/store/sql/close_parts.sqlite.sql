-- Count rows of a scope came to nothing open (or have something open again), and steps of it ended
-- badly: the first of these is noted. (A workflow that stops at failures stops at a later one, too, if
-- a single step was resubmitted since.) Differs from PostgreSQL in types.
UPDATE holdfast_scopes
SET body_open = body_open - :body, tail_open = tail_open - :tail,
    error_id = ifnull(error_id, :error_id)
WHERE scope_id = :scope_id
    AND (
        :body <> 0 OR :tail <> 0 OR error_id IS NULL
        OR (
            :error_id IS NOT NULL
            AND EXISTS (
                SELECT 1 FROM holdfast_workflows AS whole
                WHERE whole.workflow_id = holdfast_scopes.workflow_id
                    AND whole.on_failure = 'fail_fast' AND whole.stopping IS NULL
            )
        )
    )
RETURNING
    CAST(workflow_id AS BLOB) AS workflow_id, body_open, tail_open,
    CAST(error_id AS BLOB) AS error_id, CAST(error_gate AS BLOB) AS error_gate,
    CAST(ended_gate AS BLOB) AS ended_gate;
