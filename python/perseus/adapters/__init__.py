"""Training frameworks that call the client without being changed themselves: a module each, with install()."""
