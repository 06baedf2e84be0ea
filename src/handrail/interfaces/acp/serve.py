"""Run the agent until the client closes the connection."""

import os
from collections.abc import Mapping

import anyio
from acp.agent.connection import AgentSideConnection

from handrail.app.app import Options
from handrail.interfaces.acp.agent import Agent
from handrail.interfaces.acp.stdio import Stdio


async def serve(options: Options, environ: Mapping[str, str] = os.environ) -> None:
    """Answer the client on standard input and output; returns when it has gone."""
    stdio = await Stdio.take_over()
    async with anyio.create_task_group() as tasks:
        agent = Agent(stdio, tasks, options, environ)
        connection = AgentSideConnection(agent, stdio, listening=False, use_unstable_protocol=True)
        try:
            await connection.listen()
        finally:
            with anyio.CancelScope(shield=True):
                await agent.close()
            tasks.cancel_scope.cancel()
