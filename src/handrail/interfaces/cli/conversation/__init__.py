"""The interactive conversation: prompt, slash commands, questions, first screens."""
