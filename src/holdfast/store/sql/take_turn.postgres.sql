-- Take the turn of a work that one worker does for all, if it is due. A time in the future was noted
-- before the clock stepped back. Differs from SQLite in its types.
INSERT INTO holdfast_meta AS turn (name, value, at) VALUES (:name::text, NULL, :now)
ON CONFLICT (name) DO UPDATE SET at = excluded.at
WHERE turn.at > excluded.at
    OR turn.at <= excluded.at - interval '1 microsecond' * :every_us::bigint
RETURNING value, at;
