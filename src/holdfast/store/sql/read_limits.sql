-- Every rule, as it was declared in code and as an operator chose it.
SELECT scope, declared, chosen, chosen_by, updated_at FROM holdfast_limits ORDER BY scope;
