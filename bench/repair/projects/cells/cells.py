"""A table of text cells: reading and writing CSV, columns, sorting and alignment."""


def parse_row(line: str) -> list[str]:
    """The cells of one line of CSV; quoted cells may hold commas and doubled quotes."""
    cells: list[str] = []
    cell = ""
    quoted = False
    at = 0
    while at < len(line):
        character = line[at]
        if quoted:
            if character == '"' and line[at + 1 : at + 2] == '"':
                cell += '"'
                at += 1
            elif character == '"':
                quoted = False
            else:
                cell += character
        elif character == '"':
            quoted = True
        elif character == ",":
            cells.append(cell)
            cell = ""
        else:
            cell += character
        at += 1
    if quoted:
        raise ValueError("a quote is not closed")
    cells.append(cell)
    return cells


def write_row(cells: list[str]) -> str:
    """One line of CSV; a cell is quoted only where it has to be."""
    written = []
    for cell in cells:
        if any(mark in cell for mark in ',"\n'):
            cell = '"' + cell.replace('"', '""') + '"'
        written.append(cell)
    return ",".join(written)


class Table:
    """Rows of text below a header."""

    def __init__(self, header: list[str], rows: list[list[str]]) -> None:
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"a row has {len(row)} cells, not {len(header)}")
        self.header = header
        self.rows = rows

    @classmethod
    def parse(cls, text: str) -> "Table":
        """Read CSV; empty lines are skipped."""
        lines = [line for line in text.splitlines() if line.strip()]
        if not lines:
            raise ValueError("no header")
        return cls(parse_row(lines[0]), [parse_row(line) for line in lines[1:]])

    def column(self, name: str) -> list[str]:
        if name not in self.header:
            raise KeyError(name)
        at = self.header.index(name)
        return [row[at] for row in self.rows]

    def sorted_by(self, name: str, *, numeric: bool = False, descending: bool = False) -> "Table":
        """A new table; rows with equal cells keep their order, also when descending."""
        at = self.header.index(name)
        rows = sorted(self.rows, key=lambda row: float(row[at]) if numeric else row[at], reverse=descending)
        return Table(self.header, rows)

    def drop(self, name: str) -> "Table":
        """A new table without this column."""
        at = self.header.index(name)
        header = self.header[:at] + self.header[at + 1 :]
        return Table(header, [row[:at] + row[at + 1 :] for row in self.rows])

    def render(self) -> str:
        """Columns as wide as their widest cell, two spaces between, no spaces at the ends of lines."""
        lines = [self.header, *self.rows]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.header))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
