"""Connects training frameworks to the client without changing them: one module per framework, each with install()."""
