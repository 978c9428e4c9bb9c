-- One remembered fact about the whole store, and how the clock stands.
SELECT (SELECT at FROM holdfast_meta WHERE name = :name), :now;
