"""Training logs: lines of many writers in one file, read once, as a stream, into typed events.

One module a family of lines (`torchrun`, `deepspeed`, `hf_trainer`, `megatron`, `nccl`); `reader` asks them in
turn. Docs: docs/formats/logs.md. A family looks at one line at a time: lines of other writers may stand between
any two, so that a line means what it says by itself, or it is no event.
"""
