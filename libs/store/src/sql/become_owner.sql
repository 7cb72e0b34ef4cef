-- Called second in every step of the migration, by begin_alone, so that whatever is made belongs to the owner.
SET LOCAL ROLE servo_owner;
ALTER DEFAULT PRIVILEGES FOR ROLE servo_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
