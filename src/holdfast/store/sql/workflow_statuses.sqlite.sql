-- Where these workflows stand: what a waiter asks. Differs from PostgreSQL in how a batch is bound.
SELECT workflow_id, status FROM holdfast_workflows WHERE workflow_id IN (SELECT value FROM json_each(:ids));
