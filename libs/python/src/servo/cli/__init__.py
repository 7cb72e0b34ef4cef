"""The command ``servo``. Each command imports what it needs when it is called, so that help comes at once."""
