"""How a batch goes on after a command: by a rule where one is enough, else by the model's word."""

from handrail.context.assemble import assemble
from handrail.engine.side_call import SideCall
from handrail.engine.turn import Turn
from handrail.models.base import Request, UserTurn
from handrail.models.decisions import SCHEMA, Decided, read_decision
from handrail.protocol.events import BatchDecided
from handrail.sessions.batch import Batch
from handrail.sessions.transcript import Resulted, Said

TRIES = 2
MOST_CORRECTIONS = 3
ANSWER_TOKENS, SMALL_ANSWER_TOKENS, SMALL_OUTPUT = 1_000, 160, 1_200
ASKED = """[Handrail: command {number} of {total} has ended: {succeeded} succeeded, {failed} failed, \
{remaining} remaining.{following} Look at what it wrote and say how to go on. Call no tool; answer with one \
JSON object and nothing else:
{{"decision": "continue"}}: go on with the next
{{"decision": "stop", "why": "..."}}: run no more of them
{{"decision": "replace", "command": "...", "why": "..."}}: run this command {place}; "network": true \
where it needs the network. The user is asked about it as about any command of yours.]"""
SMALL = "A command failed. Answer in JSON. decision is continue (it does not matter), stop, or replace (with \
the corrected command)."
AGAIN = "[Handrail: that could not be read: {problem}. Answer with the JSON object alone.]"
UNSEEN = "it failed, and the model is not shown what commands write (commands.output_to_model)"
OFTEN = f"it failed again after {MOST_CORRECTIONS} corrections"
SAID_NO = "you said no to it"


class BatchDeciding:
    """Says after each command what follows."""

    def __init__(self, turn: Turn, side: SideCall) -> None:
        self._turn = turn
        self._side = side

    async def decided(self, batch: Batch, turn_id: str) -> BatchDecided:
        """The decision, recorded by whom it was made; what cannot be read twice is a stop."""
        by_rule = self._by_rule(batch)
        decided = by_rule or await self._by_model(batch)
        unread = f"the model could not say how to go on: {decided.problem}" if decided.problem else ""
        return BatchDecided(
            turn_id=turn_id,
            batch_id=batch.batch_id,
            number=batch.number,
            decision=decided.decision,
            by="rule" if by_rule or unread else "model",
            why=unread or decided.why,
            command=decided.command,
            network=decided.network,
        )

    def _by_rule(self, batch: Batch) -> Decided | None:
        small = self._side.model.capabilities.one_action
        if batch.end == "ok":
            # A call of a small model takes many seconds, and says nothing after a success.
            return Decided("continue") if small or not batch.told else None
        if batch.rejected:
            return Decided("stop", why=SAID_NO)
        if not batch.told:
            return Decided("stop", why=UNSEEN)
        return Decided("stop", why=OFTEN) if batch.corrections >= MOST_CORRECTIONS else None

    async def _by_model(self, batch: Batch) -> Decided:
        decided = Decided()
        for _ in range(TRIES):
            answered = await self._side.ask(self._request(batch, decided.problem), "batch")
            problem = answered.problem.rstrip(".")
            decided = Decided(problem=problem) if problem else read_decision(answered.text)
            if not decided.problem:
                return decided
        return decided

    def _request(self, batch: Batch, problem: str) -> Request:
        model, turn = self._side.model, self._turn
        if model.capabilities.one_action:
            return self._small(batch, problem)
        # The conversation as it was shown, tools included, so that the provider's cache is used.
        question = "\n\n".join(filter(None, (_question(batch), problem and AGAIN.format(problem=problem))))
        asked = Said(turn.session.seq, question, by="handrail")
        return assemble(
            prompt=turn.prompt,
            cut=turn.session.state.cut,
            transcript=[*turn.compacting.shown(model), asked],
            capabilities=model.capabilities,
            model=model.name,
            max_output=ANSWER_TOKENS,
            deadlines=turn.deadlines,
            secrets=turn.secrets,
            stored=turn.stored,
        )

    def _small(self, batch: Batch, problem: str) -> Request:
        results = [each for each in self._turn.session.transcript if isinstance(each, Resulted)]
        output = results[-1].content[-SMALL_OUTPUT:] if results else ""
        words = f"Command: {batch.planned[batch.number - 1].command}\nIt wrote:\n{output}"
        again = f"\n{AGAIN.format(problem=problem)}" if problem else ""
        return Request(
            system=SMALL,
            messages=(UserTurn(self._turn.secrets.hide(words + again)),),
            output_schema=SCHEMA,
            max_output_tokens=SMALL_ANSWER_TOKENS,
            temperature=0.0,
            deadlines=self._turn.deadlines,
        )


def _question(batch: Batch) -> str:
    coming = batch.planned[batch.number].command if batch.remaining else ""
    return ASKED.format(
        number=batch.number,
        total=batch.total,
        succeeded=batch.succeeded,
        failed=batch.failed,
        remaining=batch.remaining,
        following=f" The next is: {coming}" if coming else "",
        place="in place of the next" if batch.end == "ok" else "in its place",
    )
