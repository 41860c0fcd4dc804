"""Worlds that go wrong around the command, and what must be true of it afterwards."""
