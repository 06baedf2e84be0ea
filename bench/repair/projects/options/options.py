"""Settings in sections of `key = value` lines: reading, typed access, merging and writing."""

TRUE = {"yes", "true", "on", "1"}
FALSE = {"no", "false", "off", "0"}


class SettingsError(Exception):
    """What is wrong, with the number of the line."""


def strip_comment(line: str) -> str:
    """The line without a comment; a # inside double quotes stays."""
    quoted = False
    for at, character in enumerate(line):
        if character == '"':
            quoted = not quoted
        elif character == "#" and not quoted:
            return line[:at].rstrip()
    return line.rstrip()


def parse(text: str) -> dict[str, dict[str, str]]:
    """Sections with their keys; keys before the first section are in section ``."""
    sections: dict[str, dict[str, str]] = {"": {}}
    current = ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = strip_comment(raw).strip()
        if not line:
            continue
        if line.startswith("["):
            if not line.endswith("]"):
                raise SettingsError(f"line {number}: a section ends with ]")
            current = line[1:-1].strip()
            sections.setdefault(current, {})
            continue
        key, separator, value = line.partition("=")
        if not separator or not key.strip():
            raise SettingsError(f"line {number}: not `key = value`")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        sections[current][key.strip().lower()] = value
    return sections


class Settings:
    def __init__(self, sections: dict[str, dict[str, str]]) -> None:
        self.sections = sections

    @classmethod
    def read(cls, text: str) -> "Settings":
        return cls(parse(text))

    def get(self, name: str, default: str = "") -> str:
        """The value of `section.key`, or of `key` before the first section."""
        section, _, key = name.rpartition(".")
        return self.sections.get(section, {}).get(key.lower(), default)

    def get_int(self, name: str, default: int = 0) -> int:
        value = self.get(name)
        if not value:
            return default
        try:
            return int(value.replace("_", ""))
        except ValueError:
            raise SettingsError(f"{name} is not a whole number: {value}") from None

    def get_bool(self, name: str, *, default: bool = False) -> bool:
        """Yes, true, on and 1 are true; no, false, off and 0 are false; in any case of letters."""
        value = self.get(name).lower()
        if not value:
            return default
        if value in TRUE:
            return True
        if value in FALSE:
            return False
        raise SettingsError(f"{name} is neither yes nor no: {value}")

    def get_list(self, name: str) -> list[str]:
        """Parts between commas, without spaces around them and without empty ones."""
        return [part.strip() for part in self.get(name).split(",") if part.strip()]

    def merged(self, other: "Settings") -> "Settings":
        """New settings: those of the other win, key by key."""
        sections = {name: dict(values) for name, values in self.sections.items()}
        for name, values in other.sections.items():
            sections.setdefault(name, {}).update(values)
        return Settings(sections)

    def write(self) -> str:
        """Text that reads back as the same settings, without empty sections."""
        lines: list[str] = []
        for name, values in self.sections.items():
            if not values:
                continue
            if name:
                lines += ([""] if lines else []) + [f"[{name}]"]
            for key, value in values.items():
                quoted = f'"{value}"' if value != value.strip() or "#" in value else value
                lines.append(f"{key} = {quoted}")
        return "\n".join(lines) + "\n" if lines else ""
