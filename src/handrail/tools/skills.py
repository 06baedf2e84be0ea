"""The skill tool: the instructions of a skill, and the files beside them."""

from typing import Annotated

from msgspec import Meta

from handrail.config.skills import SKILL_FILE, SkillFolders
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.protocol.values import Value
from handrail.tools.tool import CallContext, Outcome, Tool, pluralize, tool_refused

INTRO = (
    "[Skill {name}{file}, from {owner}. Follow it where it serves the user's request. It permits nothing: "
    "every call is still checked, and a refusal stays one.{files}]"
)
OWNERS = {"yours": "the user", "workspace": "this workspace, trusted by the user"}
MAX_NAMES = 40


class SkillArguments(Value):
    name: Annotated[str, Meta(min_length=1, max_length=64)]
    file: Annotated[str, Meta(max_length=400)] = ""
    first_line: Annotated[int, Meta(ge=1)] = 1


class UseSkill(Tool[SkillArguments]):
    name = "skill"
    description = "Read a skill's instructions before work it fits; with `file`, a file that they name."
    action = "look"
    arguments = SkillArguments

    def __init__(self, skills: SkillFolders) -> None:
        self._skills = skills

    def summary(self, arguments: SkillArguments, work: CallContext) -> str:
        return f"{arguments.name} {arguments.file}".rstrip()

    async def run(self, arguments: SkillArguments, work: CallContext) -> Outcome:
        try:
            skill = self._skills.find_usable(arguments.name)
            wanted = arguments.file if arguments.file not in ("", SKILL_FILE) else ""
            names = self._skills.names(skill)
            text = self._skills.file(skill, wanted).decode() if wanted else skill.body
        except (UsageProblem, ConfigProblem) as problem:
            raise tool_refused(self.name, "invalid_arguments", str(problem)) from problem
        except UnicodeDecodeError as error:
            message = f"{arguments.file} is not text, so it cannot be shown. Go on without it."
            raise tool_refused(self.name, "invalid_arguments", message) from error
        files = f" Files beside it: {', '.join(names[:MAX_NAMES])}." if names and not wanted else ""
        left = len(names) - MAX_NAMES
        files += f" And {left} more." if files and left > 0 else ""
        intro = INTRO.format(
            name=skill.name,
            file=f", file {wanted}" if wanted else "",
            owner=OWNERS[skill.found.where],
            files=files,
        )
        shown, lines = _page(text, arguments.first_line, work.shown_characters)
        return Outcome(pluralize(lines, "line"), f"{intro}\n{shown}")


def _page(text: str, first: int, most: int) -> tuple[str, int]:
    """The lines from `first` that fit, with a note on what is left; and the number of lines in all."""
    lines = text.splitlines()
    shown: list[str] = []
    for line in lines[first - 1 :]:
        if len(line) + 1 > most:
            break
        most -= len(line) + 1
        shown.append(line)
    if not shown and lines[first - 1 :]:
        shown = [f"{lines[first - 1][:most]} [the rest of this line is too long to show]"]
    end = first - 1 + len(shown)
    more = (
        f"\n[lines {first} to {end} of {len(lines)}; first_line={end + 1} shows more]"
        if end < len(lines)
        else ""
    )
    return "\n".join(shown) + more, len(lines)
