"""The command ``servo``. Each command imports its dependencies when it is called, so that help is printed at once."""
