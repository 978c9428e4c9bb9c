-- What came free of a rule, or of its keys, has been counted otherwise.
DELETE FROM holdfast_freed
WHERE scope = :scope OR (scope > :from AND scope < :until)
RETURNING scope;
