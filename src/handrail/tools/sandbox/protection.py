"""What a sandbox was seen to give on this machine, and what not."""

from typing import Literal

from handrail.protocol.values import Value

ADVICE = {
    "bubblewrap": "",
    "Landlock": "bubblewrap gives more: apt install bubblewrap, or dnf install bubblewrap",
    "none": "read commands before saying yes; on Linux: apt install bubblewrap, or dnf install bubblewrap",
}


NOT_IN_GIT = ", in .git only by git commands with nothing else beside them"


class Protection(Value):
    """Each fact is what a program saw that was run in the sandbox, not what a manual says."""

    name: Literal["bubblewrap", "Landlock", "none"] = "none"
    version: str = ""
    files: bool = False
    """Only the workspace and a temp folder can be written."""
    git: bool = False
    """`.git` and Handrail's files in the workspace cannot be written either."""
    secrets: bool = False
    """Handrail's own data and the secret places of the home cannot be read."""
    tcp: bool = False
    """TCP is off."""
    udp: bool = False
    """UDP is off."""
    sockets: bool = False
    """Local services that listen in /tmp and /run cannot be reached."""
    children: bool = False
    """No process outlives the command."""
    processes: bool = False
    """The number of processes has a limit that the kernel keeps."""
    memory: bool = False
    """So has memory."""
    walled: bool = False
    """A control group is made for each command."""
    why: str = ""
    """Why nothing better is in use."""

    @property
    def active(self) -> bool:
        return self.name != "none"

    @property
    def offline(self) -> bool:
        return self.tcp and self.udp

    def title(self, *, network: bool = False) -> str:
        """One phrase for a line: `sandbox bubblewrap, no network`."""
        if not self.active:
            return "no sandbox"
        if network:
            return f"sandbox {self.name}, with network"
        reach = "no network" if self.offline else "no TCP" if self.tcp else "network open"
        return f"sandbox {self.name}, {reach}"

    def told(self, *, network: bool = False) -> str:
        """What a model needs to know when the sandbox may have been in its way."""
        rules = []
        if self.files:
            rules.append("writes only inside the workspace" + (NOT_IN_GIT if self.git else ""))
        if self.tcp and not network:
            rules.append("no network")
        return f"[sandbox: {'; '.join(rules)}]" if rules else ""

    @property
    def given(self) -> tuple[str, ...]:
        """What is given, in words."""
        return tuple(words for given, words, _ in self._facts() if given and words)

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not given, in words."""
        return tuple(words for given, _, words in self._facts() if not given and words)

    @property
    def advice(self) -> str:
        return ADVICE[self.name]

    def _facts(self) -> tuple[tuple[bool, str, str], ...]:
        everything = self.active and self.files
        return (
            (self.files, "writes only in the workspace and a temp folder", "writes are not confined"),
            (self.git, ".git and .handrail read-only", ".git and .handrail can be written" * everything),
            (self.secrets, "keys in the home unreadable", "keys in the home can be read"),
            (self.offline, "no network", "UDP is open" if self.tcp else "the network is open"),
            (self.sockets, "", "local services (session bus, docker) can be reached"),
            (self.children, "no process left behind", "a process that leaves its group is left behind"),
            (
                self.processes,
                "processes limited in number",
                "processes are not limited in number by the kernel, only watched",
            ),
            (self.memory, "memory limited", "memory is not limited by the kernel, only watched"),
        )
