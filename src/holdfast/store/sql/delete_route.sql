-- A route is gone; its tasks go where their code says, or where another route does.
DELETE FROM holdfast_routes WHERE pattern = :pattern RETURNING pattern;
