"""A league table: results of matches, points, ranks with ties, and form."""

from dataclasses import dataclass, field


@dataclass
class Team:
    name: str
    won: int = 0
    drawn: int = 0
    lost: int = 0
    scored: int = 0
    conceded: int = 0
    results: list[str] = field(default_factory=list)

    @property
    def points(self) -> int:
        return 3 * self.won + self.drawn

    @property
    def difference(self) -> int:
        return self.scored - self.conceded

    def record(self, scored: int, conceded: int) -> None:
        self.scored += scored
        self.conceded += conceded
        if scored > conceded:
            self.won += 1
            self.results.append("W")
        elif scored < conceded:
            self.lost += 1
            self.results.append("L")
        else:
            self.drawn += 1
            self.results.append("D")


class League:
    def __init__(self, *names: str) -> None:
        self.teams = {name: Team(name) for name in names}

    def play(self, home: str, away: str, result: str) -> None:
        """Record a match with a result such as `2:1`."""
        if home == away:
            raise ValueError("a team cannot play against itself")
        goals = result.split(":")
        if len(goals) != 2 or not all(goal.strip().isdigit() for goal in goals):
            raise ValueError(f"not a result: {result}")
        ours, theirs = map(int, goals)
        self.teams[home].record(ours, theirs)
        self.teams[away].record(theirs, ours)

    def table(self) -> list[Team]:
        """By points, then goal difference, then goals scored, then name."""
        return sorted(
            self.teams.values(), key=lambda team: (-team.points, -team.difference, -team.scored, team.name)
        )

    def ranks(self) -> dict[str, int]:
        """Teams equal in points, difference and goals share a rank, and the next rank is left out."""
        ranks: dict[str, int] = {}
        before = None
        rank = 0
        for place, team in enumerate(self.table(), start=1):
            now = (team.points, team.difference, team.scored)
            if now != before:
                rank = place
            ranks[team.name] = rank
            before = now
        return ranks

    def form(self, name: str, matches: int = 3) -> str:
        """The last results, the newest first, such as `WLD`."""
        newest = self.teams[name].results[::-1]
        return "".join(newest[:matches])

    def longest_run(self, name: str, result: str = "W") -> int:
        """The most matches in a row with this result."""
        longest = current = 0
        for each in self.teams[name].results:
            current = current + 1 if each == result else 0
            longest = max(longest, current)
        return longest

    def text(self) -> str:
        """The table as text, one line a team, such as ` 1. Reds  6  +3`."""
        width = max((len(name) for name in self.teams), default=0)
        ranks = self.ranks()
        lines = []
        for team in self.table():
            lines.append(f"{ranks[team.name]:>2}. {team.name:<{width}} {team.points:>2} {team.difference:>+3}")
        return "\n".join(lines)
