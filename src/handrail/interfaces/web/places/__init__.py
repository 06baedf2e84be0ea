"""Places beside conversations, each with its own address."""

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from handrail.interfaces.web.page_call import PageCall
from handrail.interfaces.web.places.agents import agent_page, agents_page, builds_page, run_page
from handrail.interfaces.web.places.audit import audit_page, request_page
from handrail.interfaces.web.places.changes import change_page, net_page, rewind_preview
from handrail.interfaces.web.places.charts import charts_page
from handrail.interfaces.web.places.checks import checks_page, checks_part
from handrail.interfaces.web.places.intents import blame_page, intent_page, intents_page
from handrail.interfaces.web.places.knowledge import document_page, knowledge_page
from handrail.interfaces.web.places.settings import keys_part, settings_page
from handrail.interfaces.web.places.skills import skills_page
from handrail.interfaces.web.places.sources import sources_page
from handrail.interfaces.web.places.split_forms import limits_part, own_text_part, subtask_part
from handrail.interfaces.web.places.splits import split_page, split_part, splits_page
from handrail.interfaces.web.places.tasks import (
    task_form_part,
    task_rows,
    task_targets,
    tasks_page,
    tasks_part,
)
from handrail.interfaces.web.places.viewer import viewer_page

PLACE_PAGES: dict[str, Callable[[PageCall], Awaitable[Response]]] = {
    "/s/{session}/changes/{change}": change_page,
    "/s/{session}/diff": net_page,
    "/s/{session}/rewind": rewind_preview,
    "/tasks": tasks_page,
    "/tasks/part": tasks_part,
    "/tasks/rows": task_rows,
    "/tasks/targets": task_targets,
    "/tasks/{task}/form": task_form_part,
    "/intents": intents_page,
    "/intents/{intent}": intent_page,
    "/blame": blame_page,
    "/audit": audit_page,
    "/audit/{session}/{number}": request_page,
    "/charts": charts_page,
    "/builds": builds_page,
    "/checks": checks_page,
    "/checks/part": checks_part,
    "/splits": splits_page,
    "/splits/{split}": split_page,
    "/splits/{split}/part": split_part,
    "/splits/{split}/limits": limits_part,
    "/splits/{split}/subtasks/{subtask}": subtask_part,
    "/splits/{split}/conflicts/{conflict}": own_text_part,
    "/agents": agents_page,
    "/agents/runs/{run}": run_page,
    "/agents/{agent}": agent_page,
    "/skills": skills_page,
    "/sources": sources_page,
    "/knowledge": knowledge_page,
    "/knowledge/{document}": document_page,
    "/settings": settings_page,
    "/keys": keys_part,
    "/viewer": viewer_page,
}
