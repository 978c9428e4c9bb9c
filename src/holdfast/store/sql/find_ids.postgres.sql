-- The ids between :first and :last that end with :ending, the greatest first; "" is any end. At most
-- :scan of them are examined, in the index of the ids alone, so a table of ten million rows costs
-- no more than a small one. Differs from SQLite, whose ids are text.
SELECT id
FROM (
    SELECT id FROM holdfast_tasks
    WHERE id BETWEEN :first::uuid AND :last::uuid
    ORDER BY id DESC LIMIT :scan::int
) AS near
WHERE right(id::text, length(:ending::text)) = :ending::text
LIMIT :limit::int;
