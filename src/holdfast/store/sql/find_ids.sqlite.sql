-- The ids between :first and :last that end with :ending, the greatest first; "" is any end. At most
-- :scan of them are examined, in the index of the ids alone, so a table of ten million rows costs
-- no more than a small one. Differs from PostgreSQL, whose ids are no text.
SELECT id
FROM (
    SELECT id FROM holdfast_tasks
    WHERE id BETWEEN :first AND :last
    ORDER BY id DESC LIMIT :scan
)
WHERE substr(id, 37 - length(:ending)) = :ending
LIMIT :limit;
