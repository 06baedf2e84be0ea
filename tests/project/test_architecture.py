"""What import contracts cannot see: calls that start processes or write files, and the size of modules."""

import ast
import fnmatch
import sys

import pytest

from tests.project.source import SOURCE, Call, calls, modules, tree

STARTS_A_PROCESS = (
    "*.open_process",
    "*.run_process",
    "*.to_process.*",
    "*.create_subprocess_*",
    "*.subprocess_exec",
    "*.subprocess_shell",
    "os.system",
    "os.popen",
    "os.exec*",
    "os.spawn*",
    "os.posix_spawn*",
    "os.fork*",
    "subprocess.*",
    "*.ProcessPoolExecutor",
)
CHANGES_FILES = (
    "*.write_text",
    "*.write_bytes",
    "*.unlink",
    "*.rename",
    "*.renames",
    "*.touch",
    "*.symlink_to",
    "*.hardlink_to",
    "*.rmdir",
    "os.replace",
    "os.remove",
    "os.removedirs",
    "os.truncate",
    "os.ftruncate",
    "os.link",
    "os.symlink",
    "shutil.copy*",
    "shutil.move",
    "shutil.rmtree",
    "tempfile.NamedTemporaryFile",
    "tempfile.mkstemp",
)


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def opens_for_writing(call: Call) -> bool:
    """Whether the call opens a file with a mode that may write, or with a mode we cannot see."""
    if call.name == "os.open":
        flags = ast.unparse(call.node.args[1]) if len(call.node.args) > 1 else ""
        return any(flag in flags for flag in ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"))
    if call.name not in ("open", "io.open", "os.fdopen", "anyio.open_file") and not call.name.endswith(
        ".open"
    ):
        return False
    position = 0 if call.name not in ("open", "io.open", "os.fdopen", "anyio.open_file") else 1
    modes = [keyword.value for keyword in call.node.keywords if keyword.arg == "mode"]
    modes += call.node.args[position : position + 1]
    if not modes:
        return False
    mode = modes[0]
    if isinstance(mode, ast.Constant) and isinstance(mode.value, str):
        return bool(set(mode.value) & set("wax+"))
    return position == 1


def listed(found: list[Call]) -> str:
    return "\n".join(f"{call.module}:{call.line}: {call.name}" for call in found)


@pytest.mark.promise("PROJ-1")
def test_only_tools_starts_processes() -> None:
    # The embedded model's child goes into the background by itself, and its file may come by pip.
    own = ("tools", "models/embedded/child.py", "models/embedded/server.py", "models/embedded/sources.py")
    found = [call for call in calls(modules(apart_from=own)) if matches(call.name, STARTS_A_PROCESS)]
    assert not found, listed(found)


@pytest.mark.promise("PROJ-2")
def test_only_the_writer_and_our_own_state_write_files() -> None:
    # The trial writes to see that a sandbox refuses it; a control group is a folder of the kernel's.
    trial = ("tools/sandbox/trial.py", "tools/sandbox/cgroup.py")
    state = ("config", "interfaces", "models/embedded", "storage")
    # The trace is appended to, and never anything else.
    writers = ("workspace/disk.py", "workspace/writer.py", "changes/trace/file.py")
    rooms = modules(apart_from=(*state, *writers, *trial))
    found = [call for call in calls(rooms) if matches(call.name, CHANGES_FILES) or opens_for_writing(call)]
    assert not found, listed(found)


@pytest.mark.parametrize(
    ("source", "writes"),
    [
        ("open('x')", False),
        ("open('x', 'rb')", False),
        ("open('x', 'w')", True),
        ("open('x', mode='r+')", True),
        ("open('x', mode)", True),
        ("path.open()", False),
        ("path.open('ab')", True),
        ("os.open(path, os.O_RDONLY)", False),
        ("os.open(path, os.O_RDWR | os.O_CREAT)", True),
        ("log.open(path)", False),
    ],
)
def test_a_call_that_may_write_is_recognised(source: str, writes: bool) -> None:
    node = ast.parse(source, mode="eval").body
    assert isinstance(node, ast.Call)
    call = Call("", 1, ast.unparse(node.func), node)
    assert opens_for_writing(call) is writes


def test_what_models_write_is_repaired_in_one_place_only() -> None:
    found = [
        str(path.relative_to(SOURCE))
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.module == "handrail.models.mending"
    ]
    assert found == ["models/reading.py"]


def test_what_models_write_is_read_in_one_place_only() -> None:
    # Frames of a wire, files of ours, copies of values; and what is only shown while it comes.
    frames = (
        "anthropic_answer.py",
        "openai_answer.py",
        "wire.py",
        "refusals.py",
        "scripted.py",
        "sendable.py",
    )
    own = tuple(f"models/{name}" for name in ("reading.py", "arguments.py", *frames))
    rooms = [path for path in modules(apart_from=own) if path.is_relative_to(SOURCE / "models")]
    found = [call for call in calls(rooms) if matches(call.name, ("json.loads", "from_json", "JSONDecoder"))]
    assert not found, listed(found)


def test_protocol_imports_only_pydantic_and_the_standard_library() -> None:
    found = set()
    for path in sorted((SOURCE / "protocol").rglob("*.py")):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    assert found <= {"pydantic", "handrail"} | set(sys.stdlib_module_names)


def test_no_module_passes_400_lines() -> None:
    counts = {str(path.relative_to(SOURCE)): len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert not {name: count for name, count in counts.items() if count > 400}


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "util", "helpers", "helper", "common", "misc", "shared", "manager", "service"}
    assert not [path for path in modules() if path.stem in empty or path.parent.name in empty]
