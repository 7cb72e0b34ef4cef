-- Switches to the owner, so that everything that a migration creates belongs to it. Run second in
-- every step of a migration, by begin_exclusive.
SET LOCAL ROLE servo_owner;
ALTER DEFAULT PRIVILEGES FOR ROLE servo_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
