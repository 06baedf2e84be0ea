"""What interfaces ask about what was done: sessions, changes, requests, counts."""
