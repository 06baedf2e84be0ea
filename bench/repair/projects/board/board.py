"""A rectangular board of characters: neighbours, regions, shortest ways and rotation."""

from collections import deque

WALL = "#"
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))


class Board:
    """Rows of equal length; positions are (row, column)."""

    def __init__(self, text: str) -> None:
        self.rows = text.strip("\n").split("\n")
        if len({len(row) for row in self.rows}) != 1:
            raise ValueError("rows differ in length")

    @property
    def height(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        return len(self.rows[0])

    def at(self, position: tuple[int, int]) -> str:
        row, column = position
        if not (0 <= row < self.height and 0 <= column < self.width):
            raise IndexError(position)
        return self.rows[row][column]

    def find(self, character: str) -> tuple[int, int]:
        """The first position of a character, by rows."""
        for row, cells in enumerate(self.rows):
            if character in cells:
                return row, cells.index(character)
        raise LookupError(character)

    def neighbours(self, position: tuple[int, int]) -> list[tuple[int, int]]:
        """Positions above, right, below and left that are on the board."""
        row, column = position
        around = [(row + down, column + right) for down, right in STEPS]
        return [(r, c) for r, c in around if 0 <= r < self.height and 0 <= c < self.width]

    def region(self, start: tuple[int, int]) -> set[tuple[int, int]]:
        """All positions that hang together with the start and have the same character."""
        wanted = self.at(start)
        seen = {start}
        waiting = [start]
        while waiting:
            for position in self.neighbours(waiting.pop()):
                if position not in seen and self.at(position) == wanted:
                    seen.add(position)
                    waiting.append(position)
        return seen

    def distance(self, start: tuple[int, int], goal: tuple[int, int]) -> int | None:
        """The fewest steps between two positions around walls; None where there is no way."""
        distances = {start: 0}
        waiting = deque([start])
        while waiting:
            position = waiting.popleft()
            if position == goal:
                return distances[position]
            for other in self.neighbours(position):
                if other not in distances and self.at(other) != WALL:
                    distances[other] = distances[position] + 1
                    waiting.append(other)
        return None

    def rotated(self) -> "Board":
        """A new board, turned clockwise by a quarter."""
        columns = ["".join(row[at] for row in reversed(self.rows)) for at in range(self.width)]
        return Board("\n".join(columns))

    def count(self, character: str) -> int:
        return sum(row.count(character) for row in self.rows)
