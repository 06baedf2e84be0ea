"""The application: commands in, events and answers out. Interfaces import nothing below it."""
