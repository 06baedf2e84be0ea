"""A process that uses the child: `client.py FOLDER GRACE WORDS` prints the child's pid and the answer.

With WORDS `-` it asks nothing. It leaves when its standard input ends.
"""

import json
import sys
from pathlib import Path

import anyio

from handrail.models.embedded.embedded_model import EmbeddedModel
from handrail.models.embedded.model_files import SMOLLM2
from handrail.models.model import Request, UserTurn
from handrail.models.reading.collector import collect_answer


async def main(folder: Path, grace: float, words: str) -> None:
    model = EmbeddedModel(SMOLLM2, folder / SMOLLM2.name, folder, grace)
    text = ""
    if words == "-":
        async for _ in model.child.connect():
            pass
    else:
        text = (await collect_answer(model.stream(Request("", (UserTurn(words),), max_output_tokens=4)))).text
    running = model.child.running()
    sys.stdout.write(json.dumps({"child": running and running.pid, "text": text}))
    sys.stdout.flush()
    await anyio.to_thread.run_sync(sys.stdin.read)
    await model.aclose()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
