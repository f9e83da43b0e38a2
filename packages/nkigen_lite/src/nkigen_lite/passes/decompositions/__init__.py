"""Rewrite rules of operations that engines lack: every module has its `RULES`."""
