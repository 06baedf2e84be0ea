"""Shell commands. A file has its own as `command`, others as NAME_command; `command_list.py` lists all."""
