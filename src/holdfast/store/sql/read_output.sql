-- What a generator task has yielded so far, and whether more may come.
SELECT status, attempt, output FROM holdfast_tasks WHERE id = :id;
