-- Which claims ended in an attempt row. Differs from PostgreSQL: an array of [key, token].
SELECT row.task_seq AS key, row.claim_token
FROM json_each(:changes) AS change
CROSS JOIN holdfast_task_attempts AS row
WHERE row.task_seq = json_extract(change.value, '$[0]')
    AND row.claim_token = json_extract(change.value, '$[1]');
