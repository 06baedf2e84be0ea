"""Tasks that depend on each other: order, cycles, start days and the longest chain."""


class Cycle(Exception):
    """Tasks that wait for each other; carries their names in order."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(" -> ".join(names))
        self.names = names


class Plan:
    """Tasks with a duration in days, each waiting for others."""

    def __init__(self) -> None:
        self.days: dict[str, int] = {}
        self.needs: dict[str, list[str]] = {}

    def add(self, name: str, days: int, *needs: str) -> None:
        if days < 1:
            raise ValueError("a task takes at least a day")
        if name in self.days:
            raise ValueError(f"{name} is there already")
        self.days[name] = days
        self.needs[name] = list(needs)

    def missing(self) -> list[str]:
        """Names that are needed and never added, in alphabetical order."""
        wanted = {need for needs in self.needs.values() for need in needs}
        return sorted(wanted - self.days.keys())

    def order(self) -> list[str]:
        """All tasks, each after what it needs; those that could go next, in alphabetical order."""
        if self.missing():
            raise KeyError(self.missing()[0])
        done: list[str] = []
        left = dict(self.needs)
        while left:
            ready = sorted(name for name, needs in left.items() if all(need in done for need in needs))
            if not ready:
                raise Cycle(self._cycle(left))
            done.append(ready[0])
            del left[ready[0]]
        return done

    def _cycle(self, left: dict[str, list[str]]) -> list[str]:
        seen: list[str] = []
        name = min(left)
        while name not in seen:
            seen.append(name)
            name = min(need for need in left[name] if need in left)
        return [*seen[seen.index(name) :], name]

    def starts(self) -> dict[str, int]:
        """The first day of each task, from 0, when everything begins as early as it can."""
        found: dict[str, int] = {}
        for name in self.order():
            found[name] = max((found[need] + self.days[need] for need in self.needs[name]), default=0)
        return found

    def length(self) -> int:
        """Days until everything is done."""
        return max((start + self.days[name] for name, start in self.starts().items()), default=0)

    def affected(self, name: str) -> set[str]:
        """All tasks that wait for this one, directly or not."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            current = waiting.pop()
            for other, needs in self.needs.items():
                if current in needs and other not in found:
                    found.add(other)
                    waiting.append(other)
        return found

    def critical(self) -> list[str]:
        """The longest chain of tasks, from its first to its last; the first by name among equals."""
        starts = self.starts()
        chain: list[str] = []
        candidates = [name for name in starts if starts[name] + self.days[name] == self.length()]
        while candidates:
            name = min(candidates)
            chain.append(name)
            candidates = [need for need in self.needs[name] if starts[need] + self.days[need] == starts[name]]
        return chain[::-1]
