"""The environment that commands and checks get, where an editor or the desktop started this process."""

from handrail.tools.login_path import use_login_path

__all__ = ["use_login_path"]
