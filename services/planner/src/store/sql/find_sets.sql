-- Lists the values of dynamic sets in the order they were added. Run by store::sets::values and
-- store::sets::values_of_many.
SELECT o.place, v.set_name, v.value
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS o (tenant, workspace, set_name, place)
JOIN planner.partition_values v ON v.tenant = o.tenant AND v.workspace = o.workspace AND v.set_name = o.set_name
ORDER BY o.place, v.ordinal
