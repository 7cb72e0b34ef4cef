-- Checks a role membership. Reads the membership itself, because a superuser counts as a member of
-- every role. Run by migrate.
SELECT EXISTS (
    SELECT FROM pg_auth_members m
    WHERE m.roleid = (SELECT oid FROM pg_roles WHERE rolname = $1)
        AND m.member = (SELECT oid FROM pg_roles WHERE rolname = $2)
)
