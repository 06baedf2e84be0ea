"""The forms an edit can take, and how each is applied and checked."""
