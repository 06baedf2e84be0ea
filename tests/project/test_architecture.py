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
    own = (
        "tools",
        "models/embedded/server_process.py",
        "models/embedded/server.py",
        "models/embedded/download_sources.py",
        "verification/screening/injected",  # in the sandbox
    )
    found = [call for call in calls(modules(apart_from=own)) if matches(call.name, STARTS_A_PROCESS)]
    assert not found, listed(found)


@pytest.mark.promise("PROJ-2")
def test_only_the_writer_and_our_own_state_write_files() -> None:
    # The trial writes to see that a sandbox refuses it; a control group is a folder of the kernel's, and a
    # request to the process that starts commands is only in memory.
    trial = (
        *("tools/sandbox/trial.py", "tools/sandbox/limits.py"),
        *("tools/sandbox/fork_server.py", "tools/sandbox/warm_launcher.py"),
    )
    state = ("config", "interfaces", "models/embedded", "storage")
    # The trace is appended to, what a command changed of git's and Handrail's files is restored, and
    # installed packages, which git ignores, are in no change set.
    writers = (
        *("workspace/disk.py", "workspace/writer.py"),
        *("changes/trace/trace_file.py", "changes/protected/restorer.py", "changes/packages.py"),
        "workspace/scratch_copy",  # in Handrail's own folder
        *("verification/localise/injected", "verification/witness/injected"),  # run in the project's tests
        *("verification/behaviour/injected", "verification/screening/injected"),
    )
    rooms = modules(apart_from=(*state, *writers, *trial))
    found = [call for call in calls(rooms) if matches(call.name, CHANGES_FILES) or opens_for_writing(call)]
    assert not found, listed(found)


READERS_OF_THEIR_OWN = (
    "config/open_file.py",
    "config/files.py",  # locks and syncs Handrail's own files
    "storage",  # Handrail's own data
    "models/embedded",  # downloaded files, and the kernel's
    "models/scripted_model.py",  # the user names its file
    "interfaces/cli/commands/edit.py",  # the user names the file; it may be a pipe, as in <(command)
    "interfaces/cli/commands/setup/policy.py",
    "interfaces/acp/stdio.py",  # the pipes that it was started with
    "interfaces/web/frame.py",  # scripts and styles in the installed package
    "engine/admin/trace.py",  # the export that the user names
    "verification/witness/injected",  # its key, in the folder of a report
    "verification/screening/injected",  # in the sandbox
    "tools/process.py",  # /proc
    "tools/sandbox",  # control groups and /proc
)
"""Where files are opened that no repository can put in the way, or that the user named."""
OPENS_A_FILE: tuple[str, ...] = (
    "open",
    "io.open",
    "codecs.open",
    "os.fdopen",
    "mmap.*",
    "*.read_bytes",
    "*.read_text",
    "os.open",
)


def opens_for_reading(call: Call) -> bool:
    """Whether the call opens a file, and not a folder, to read it."""
    if call.name == "handrail.config.toml_file.read_bytes" or opens_for_writing(call):
        return False
    if call.name == "os.open" and len(call.node.args) > 1:
        flags = ast.unparse(call.node.args[1])
        return not any(flag in flags for flag in ("O_DIRECTORY", "FOLDER_FLAGS", "NO_FOLLOW_FLAGS"))
    # `.open()` without a mode, or with one to read: a path's, and no session's or archive's.
    of_a_path = call.name.endswith(".open") and [
        each for each in call.node.args if isinstance(each, ast.Constant) and str(each.value).startswith("r")
    ]
    return bool(of_a_path) or matches(call.name, OPENS_A_FILE)


@pytest.mark.promise("WORK-9")
def test_files_that_a_repository_can_replace_are_opened_in_one_place() -> None:
    found = [call for call in calls(modules(apart_from=READERS_OF_THEIR_OWN)) if opens_for_reading(call)]
    # For writing, with flags that have names.
    written = (
        *("workspace/disk.py", "interfaces/cli/main.py"),
        *("workspace/scratch_copy/clone_file.py", "workspace/scratch_copy/copy.py"),
    )
    assert not [call for call in found if call.module not in written], listed(found)


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("open(path)", True),
        ("open(os.open(name, FLAGS), 'rb')", True),
        ("path.open('rb')", True),
        ("path.read_text(encoding='utf-8')", True),
        ("(folder / name).read_bytes()", True),
        ("os.open(path, os.O_RDONLY)", True),
        ("os.open(path, os.O_RDONLY | os.O_DIRECTORY)", False),
        ("open(path, 'w')", False),
        ("talk.open(session)", False),
        ("open_file(path)", False),
    ],
)
def test_a_call_that_opens_a_file_is_recognised(source: str, reads: bool) -> None:
    node = ast.parse(source, mode="eval").body
    assert isinstance(node, ast.Call)
    assert opens_for_reading(Call("", 1, ast.unparse(node.func), node)) is reads


PRINTS: tuple[str, ...] = (
    "print",
    "input",
    "click.*echo*",
    "click.confirm",
    "click.prompt",
    "click.getchar",
    "*.write_raw",
)
PRINTS += (
    "sys.stdout.*",
    "sys.stderr.*",
    "sys.__std*",
    "traceback.print_*",
    "rich.*",
    "warnings.warn",
    "os.write",
)


@pytest.mark.promise("TERM-17")
def test_everything_printed_goes_through_the_filter() -> None:
    filtering = ("interfaces/cli/terminal.py",)
    allowed = {
        "interfaces/cli/main.py": ("print", "sys.stdout.flush"),  # the version and the help
        "interfaces/cli/conversation/input_line.py": ("self._output.write_raw",),  # lines made by `ansi`
        "interfaces/acp/terminals.py": ("os.write",),  # output as the session has it, cleaned
        "interfaces/cli/commands/rewind.py": ("input",),  # its prompt is cleaned
        "interfaces/cli/commands/servers/worker.py": ("sys.stdout.flush", "sys.stderr.flush"),
        "interfaces/cli/commands/setup/model.py": ("input",),
    }
    rooms = [path for path in modules(apart_from=filtering) if path.is_relative_to(SOURCE / "interfaces")]
    reads = ("sys.stdin.*", "sys.stdout.isatty", "sys.stdout.fileno")
    found = [
        call
        for call in calls(rooms)
        if matches(call.name, PRINTS)
        and not matches(call.name, reads)
        and call.name not in allowed.get(call.module, ())
    ]
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
        if isinstance(node, ast.ImportFrom) and node.module == "handrail.models.reading.json_repair"
    ]
    assert found == ["models/reading/json_reader.py"]


def test_what_models_write_is_read_in_one_place_only() -> None:
    # Frames of a wire, files of ours, copies of values; and what is only shown while it comes.
    frames = (
        "wire/anthropic.py",
        "wire/openai_stream.py",
        "wire/transport.py",
        "wire/provider_errors.py",
        "scripted_model.py",
        "reading/sanitize.py",
    )
    readers = ("embedded", "reading/json_reader.py", "reading/tool_calls.py", *frames)
    own = tuple(f"models/{name}" for name in readers)
    rooms = [path for path in modules(apart_from=own) if path.is_relative_to(SOURCE / "models")]
    found = [call for call in calls(rooms) if matches(call.name, ("json.loads", "decode", "JSONDecoder"))]
    assert not found, listed(found)


def test_protocol_imports_only_msgspec_and_the_standard_library() -> None:
    found = set()
    for path in sorted((SOURCE / "protocol").rglob("*.py")):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    assert found <= {"msgspec", "handrail"} | set(sys.stdlib_module_names)


def test_no_module_passes_500_lines() -> None:
    counts = {str(path.relative_to(SOURCE)): len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert not {name: count for name, count in counts.items() if count > 500}


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "util", "helpers", "helper", "common", "misc", "shared", "manager", "service"}
    assert not [path for path in modules() if path.stem in empty or path.parent.name in empty]
