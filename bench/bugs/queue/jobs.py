class Jobs:
    """Jobs are done in the order in which they came."""

    def __init__(self):
        self._waiting = []

    def add(self, name):
        self._waiting.append(name)

    def next(self):
        if not self._waiting:
            return None
        return self._waiting.pop()

    def __len__(self):
        return len(self._waiting)
