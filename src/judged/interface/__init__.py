"""Commands and pages of the core, and what the commands and pages of all components share.

For those who write a command or a page. Start reading in `judged.interface.options` (options that several commands
take), `judged.interface.arguments` (files read and written), or `judged.interface.commands.scoring`: `judged evaluate`.
"""
