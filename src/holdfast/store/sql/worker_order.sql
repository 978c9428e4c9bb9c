-- What an operator has ordered a worker to do. A number, so that text written by hand cannot
-- fail to be read: 0 stands for whatever is no order.
SELECT CASE command WHEN 'drain' THEN 1 WHEN 'stop' THEN 2 WHEN 'interrupt' THEN 3 ELSE 0 END
FROM holdfast_workers
WHERE worker_id = :worker_id;
