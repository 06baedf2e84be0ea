"""Definitions of well-known MCP servers, which `handrail sources add NAME` writes for the user to edit."""

DOWNLOADS = "network = true   # for the download; after the first start it can be false"
READY_SOURCES = {
    "filesystem": f"""\
description = "Reads, searches and writes files below this folder."
command = ["npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "${{WORKSPACE}}"]
{DOWNLOADS}
# writes = ["workspace"]   # what it writes is recorded and can be undone

[tools]
deny = ["write_file", "edit_file", "create_directory", "move_file"]
""",
    "git": f"""\
description = "Status, log, diff and blame of this git repository."
command = ["uvx", "mcp-server-git==2026.10.19", "--repository", "${{WORKSPACE}}"]
{DOWNLOADS}
# writes = ["workspace", ".git"]   # to commit, and to change branches

[tools]
allow = ["git_status", "git_log", "git_diff*", "git_show", "git_branch"]
""",
    "fetch": """\
description = "Gets web pages as Markdown."
command = ["uvx", "mcp-server-fetch==2026.10.24"]
network = true
""",
    "time": f"""\
description = "The time now, and in other time zones."
command = ["uvx", "mcp-server-time==2026.10.19"]
{DOWNLOADS}
trust_annotations = true   # its tools only read
""",
    "memory": f"""\
description = "A graph of facts that is kept between sessions."
command = ["npx", "-y", "@modelcontextprotocol/server-memory@2026.8.31"]
env = {{ MEMORY_FILE_PATH = "${{CACHE}}/memory.jsonl" }}
{DOWNLOADS}
""",
    "github": """\
description = "Issues, pull requests, code and actions on GitHub."
url = "https://api.githubcopilot.com/mcp/"
headers = { Authorization = "Bearer ${GITHUB_TOKEN}" }
""",
    "sentry": """\
description = "Errors and traces in Sentry."
url = "https://mcp.sentry.dev/mcp"
""",
    "linear": """\
description = "Issues and projects in Linear."
url = "https://mcp.linear.app/mcp"
""",
    "notion": """\
description = "Pages and databases in Notion."
url = "https://mcp.notion.com/mcp"
""",
}
