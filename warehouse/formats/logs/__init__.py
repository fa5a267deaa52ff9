"""Parser of training logs: lines of many writers in one file, parsed in one streaming pass into typed events.

Each family of lines has a module (`torchrun`, `deepspeed`, `hf_trainer`, `megatron`, `nccl`); `reader` tries them in
turn. Docs: docs/formats/logs.md. A family sees one line at a time, since lines of other writers may come between any
two. A line must be complete by itself to be an event.
"""
