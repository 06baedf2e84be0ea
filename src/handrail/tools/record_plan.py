"""The record_plan tool: the session's plan, from the stage of a pipeline; no model is offered it."""

from handrail.protocol.events import PlanChanged
from handrail.protocol.ids import new_id
from handrail.protocol.plan import Plan
from handrail.tools.tool import CallContext, Outcome, Tool, pluralize, tool_refused


class RecordPlan(Tool[Plan]):
    name = "record_plan"
    description = "Record the session's plan."
    action = "note"
    arguments = Plan
    offered = False

    async def run(self, arguments: Plan, work: CallContext) -> Outcome:
        if not work.by_code:
            raise tool_refused(self.name, "unknown_tool", "There is no such tool for you.")
        event = PlanChanged(plan_id=new_id("p"), plan=arguments, by="model")
        return Outcome(pluralize(len(arguments.steps), "step"), "Recorded.", events=(event,))
