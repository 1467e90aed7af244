"""Commands and pages of the core, and shared code for the commands and pages of all components.

To write a command or a page, start with `judged.interface.options` (shared options), `judged.interface.arguments`
(reading and writing files), and `judged.interface.commands.scoring` (`judged evaluate`).
"""
