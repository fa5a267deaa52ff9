"""Lines of DeepSpeed: its configuration, checkpoints and steps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warehouse.base.startup import regex
from warehouse.formats.logs import settings
from warehouse.formats.logs.event import NUMBER, WHOLE, Event, config

FAMILY = "deepspeed"

_RANK = regex(rf"\[Rank ({WHOLE})\] ")
_STAGE = regex(r"Creating (?:(torch\.\w+) )?ZeRO stage (\d) optimizer")
_VERSION = regex(r"DeepSpeed info: version=([\w.+-]+?),? ")
_LOCAL = regex(rf"Process rank: ({WHOLE}), device: cuda:({WHOLE}),")
_SHARD = regex(rf"zero_pp_rank_({WHOLE})_mp_rank_({WHOLE})_")
_GLOBAL_STEP = regex(rf"\[Torch\] Checkpoint global_step({WHOLE}) is (about to be saved!|ready now!)")
_STEP = regex(rf"step=({WHOLE}), skipped={WHOLE}, lr=\[({NUMBER})[\],]")
_PIPELINE = regex(rf"steps: ({WHOLE}) loss: ({NUMBER}) iter time \(s\): ({NUMBER}) samples/sec: {NUMBER}\s*$")


def message(place: str, text: str) -> Iterator[Event]:
    """Yield the events of a message of DeepSpeed's logger, or of a program that logs in the same form."""
    if rank := _RANK.match(text):
        yield {"family": FAMILY, "kind": "rank", "name": "log_dist", "rank": rank[1]}
        text = text[rank.end() :]
    if place.startswith("config.py:"):
        for event in settings.dotted(FAMILY, text, long_names=True):
            yield event
            if event["name"] == "global_rank" and re.fullmatch(WHOLE, str(event["value"])):
                yield {"family": FAMILY, "kind": "rank", "name": "global_rank", "rank": event["value"]}
        return
    if stage := _STAGE.match(text):
        yield config(FAMILY, "zero_stage", stage[2])
        if stage[1]:
            yield config(FAMILY, "optimizer_dtype", stage[1])
    elif version := _VERSION.match(text):
        yield config(FAMILY, "deepspeed_version", version[1])
    elif local := _LOCAL.match(text):
        yield {"family": FAMILY, "kind": "local_rank", "local_rank": local[2], "name": "Process rank"}
    elif step := own_step(text):
        yield step
    elif saved := _GLOBAL_STEP.match(text):
        kind = "checkpoint_start" if saved[2].startswith("about") else "checkpoint_end"
        yield {"family": FAMILY, "kind": kind, "step": saved[1], "name": f"global_step{saved[1]}"}
    elif "zero_pp_rank_" in text and (shard := _SHARD.search(text)):
        yield {
            "family": FAMILY,
            "kind": "rank",
            "name": "zero_pp_rank",
            "rank": shard[1],
            "value": f"mp_rank {shard[2]}",
        }
    else:
        yield from settings.scalars(FAMILY, text)


def own_step(text: str) -> Event | None:
    """Return the event of DeepSpeed's own step counter, which runs beside the trainer's; None for other lines."""
    if step := _STEP.match(text):
        return {"family": FAMILY, "kind": "optimizer_step", "step": step[1], "learning_rate": step[2]}
    if pipeline := _PIPELINE.match(text):
        return {
            "family": FAMILY,
            "kind": "optimizer_step",
            "step": pipeline[1],
            "loss": pipeline[2],
            "seconds": pipeline[3],
        }
    return None
