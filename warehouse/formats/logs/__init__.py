"""Parser of training logs: lines of many writers in one file, parsed in one streaming pass into typed events.

Most kinds of lines are patterns of `data/log_lines.yaml` (`line_kinds`). Modules parse what no pattern describes:
`nccl`, `megatron`, `settings`. Docs: docs/formats/logs.md. A line is parsed by itself, since lines of other writers may
come between any two, and it must be complete to be an event.
"""
