-- Called by the migration. A superuser counts as a member of everything, hence the look at the membership itself.
SELECT EXISTS (
    SELECT FROM pg_auth_members m
    WHERE m.roleid = (SELECT oid FROM pg_roles WHERE rolname = $1)
        AND m.member = (SELECT oid FROM pg_roles WHERE rolname = $2)
)
