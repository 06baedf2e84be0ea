"""Skills in folders: what each tells the model, and the button that trusts exactly that."""

from contextlib import suppress

from starlette.responses import HTMLResponse, Response

from handrail.app.app import App
from handrail.config.skills import SKILL_FILE, Skill, SkillFolders
from handrail.config.trust import WorkspaceFile
from handrail.interfaces.cli.commands.extensions.skills import skill_state
from handrail.interfaces.cli.render.styles import one_line
from handrail.interfaces.web.conversation.blocks import button, dot
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.html import Html, h
from handrail.interfaces.web.page_call import PageCall
from handrail.interfaces.web.places.agents import STATES, UNTRUSTED, file_shown
from handrail.protocol.errors import ConfigProblem

LEAD = (
    "Skills are instructions in folders. The model is told one line of each, and reads the rest when it uses "
    "one. A skill permits nothing: commands and edits are asked about as always."
)
MAX_SHOWN = 20


async def skills_page(call: PageCall) -> Response:
    def look(app: App) -> Html:
        skills = SkillFolders(app.places, app.workspace.root, trusted=app.options.trust)
        tiles = []
        for found in skills.all():
            state, description = skill_state(skills, found)
            head = h("h2", dot(STATES.get(state, "bad"), state), one_line(found.name))
            where = h("p", f"{state} · {found.where}", class_="soft")
            parts: list[Html] = []
            with suppress(ConfigProblem):  # the description says what is wrong
                parts = _files(skills.load(found), asks=state in UNTRUSTED)
            tiles.append(h("section", head, where, h("p", one_line(description)), *parts, class_="tile"))
        return h("div", *tiles, class_="tiles") if tiles else _empty()

    head = h("p", LEAD, class_="lead")
    return HTMLResponse(place(call.view("Skills", "skills"), head, await call.app.query(look), narrow=True))


def _files(skill: Skill, *, asks: bool) -> list[Html]:
    names = [SKILL_FILE, *sorted(name for name in skill.files if name != SKILL_FILE)]
    shown = [file_shown(WorkspaceFile(name, skill.files[name])) for name in names[:MAX_SHOWN]]
    if left := names[MAX_SHOWN:]:
        shown.append(h("p", f"And {len(left)} more files: {one_line(', '.join(left))}", class_="soft"))
    if asks:
        sure = button(
            "Trust it, as shown here", "trust-skill", class_="primary", id=skill.name, hash=skill.sha256
        )
        shown.append(h("div", sure, class_="buttons"))
    return shown


def _empty() -> Html:
    way = h("code", "handrail skills new NAME")
    return h("p", "No skill yet. ", way, " writes a first one.", class_="empty")
