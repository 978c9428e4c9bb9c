-- Routes: to which queues tasks go, by their names.
-- Differs from SQLite in its types.

-- `queues` is a JSON object of queues and their weights. A version of all rules is in
-- `holdfast_meta`, under 'routes'.
CREATE TABLE holdfast_routes (
    pattern    text PRIMARY KEY,
    queues     text NOT NULL,
    set_by     text,
    updated_at timestamptz NOT NULL
);
