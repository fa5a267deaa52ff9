"""DeepSpeed, the Hugging Face Trainer and Megatron-LM: whole, unusual and truncated lines."""

from __future__ import annotations

import pytest

from tests.formats.logs.conftest import Read, Rejects

STAMP = "[2024-05-23 16:00:10,125] [INFO] [callback.py:53:on_log] "
ITERATION = STAMP + "loss: 2.5, learning_rate: 1e-05, epoch: 0.0, iter: 7/90,  01:10 < 14:00,  10.1s/it"
BAR = "  8%|▊         | 7/90 [01:10<14:00, 10.10s/it]{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.0}"
MEGATRON = (
    " [2024-05-23 16:00:10] iteration        7/      90 | consumed samples:          448 | elapsed time per iteration "
    "(ms): 10125.5 | learning rate: 1.000000E-05 | global batch size:    64 | lm loss: 2.500000E+00 | loss scale: 1.0 "
    "| "
    "grad norm: 1.125 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)


def _picked(event: dict[str, object], *names: str) -> tuple[object, ...]:
    return tuple(event.get(name) for name in names)


def test_an_iteration_line_replaces_the_bar_before_it(read: Read) -> None:
    events = read("", BAR, ITERATION)

    (only,) = events
    assert _picked(only, "kind", "step", "steps", "loss", "learning_rate", "seconds", "time_utc") == (
        "iteration", 7, 90, 2.5, 1e-05, 10.1, "2024-05-23 16:00:10.125",
    )  # fmt: skip
    assert _picked(only, "line", "segment", "item", "text") == (3, 3, 0, ITERATION)


def test_a_bar_of_another_step_is_an_event_of_its_own(read: Read) -> None:
    events = read(BAR.replace(" 7/90", " 6/90"), ITERATION, BAR.replace(" 7/90", " 8/90"))

    assert [(event["kind"], event["step"]) for event in events] == [("progress", 6), ("iteration", 7), ("progress", 8)]
    assert _picked(events[0], "loss", "value", "seconds") == (2.5, "01:10", 10.1)


def test_segments_count_carriage_returns_and_lines_do_not(read: Read) -> None:
    events = read(raw=f"\r{BAR}\r{BAR.replace(' 7/', ' 8/')}\r\n{ITERATION}\n".encode())

    assert [(event["kind"], event["line"], event["segment"]) for event in events] == [
        ("progress", 1, 2),
        ("progress", 1, 3),
        ("iteration", 2, 4),
    ]


@pytest.mark.parametrize("end", range(len(STAMP) + 1, len(ITERATION)))
def test_a_cut_iteration_line_is_not_an_iteration(read: Read, rejects: Rejects, end: int) -> None:
    (event,) = read(ITERATION[:end])

    is_known = end >= len(STAMP) + len("loss: 2")
    assert event["kind"] == ("damaged" if is_known else "message")
    assert len(rejects) == is_known


def test_the_summary_is_not_an_iteration(read: Read) -> None:
    numbers = "train_runtime: 99.5, train_samples_per_second: 1.0, train_loss: 2.25, epoch: 1.0, "
    (event,) = read(f"{STAMP}{numbers}iter: 90/90,  15:10 < 00:00,  10.1s/it")

    assert _picked(event, "kind", "seconds", "loss", "step") == ("train_end", 99.5, 2.25, None)


@pytest.mark.parametrize(
    ("line", "step", "loss"),
    [
        ("100%|##########| 90/90 [15:10<00:00,  1.5it/s]", 90, None),
        ("Train: 10%|# | 9/90 [00:05<?, ?it/s]", 9, None),
        ("Epoch 0:  10%|# | 9/90 [1:00:05<?, 2.0s/it, loss=2.5]", 9, 2.5),
        (" 10%|#         | 9/90 [00:05<00:40, 2.0s/it]  {'loss': '2.5', 'epoch': 0.1}", 9, 2.5),
    ],
)
def test_bars_of_all_forms(read: Read, line: str, step: int, loss: float | None) -> None:
    (event,) = read(line)

    assert _picked(event, "kind", "step", "loss") == ("progress", step, loss)


def test_a_log_line_after_a_bar_and_after_another_log_line(read: Read) -> None:
    events = read("  8%|▊ | 7/90 [01:10<14:00, 10.10s/it]" + ITERATION, ITERATION + STAMP + "done")

    assert [(event["kind"], event["line"]) for event in events] == [("iteration", 1), ("iteration", 2), ("damaged", 2)]


def test_settings_in_their_forms(read: Read) -> None:
    events = read(
        "[2024-05-23 16:00:10,125] [INFO] [config.py:9:print]   train_batch_size ............. 1024",
        "[2024-05-23 16:00:10,125] [INFO] [config.py:9:print]   train_micro_batch_size_per_gpu  2",
        "[2024-05-23 16:00:10,125] [INFO] [config.py:9:print]   zero_config .. stage=1 reduce_scatter=True x='a b'",
        "[INFO|trainer.py:1] 2024-05-23 16:00:10,125 >>   Number of trainable parameters = 6,738,415,616",
        "[INFO|2024-05-23 16:00:10,125] trainer.py:1 >>   Gradient Accumulation steps = 32",
        '  "hidden_size": 4096,',
        "     sequence length:           4095",
        f"{STAMP}global_batch_size: 1024, micro_batch_size: 1",
    )

    assert [(event["name"], event["value"]) for event in events if event["kind"] == "config"] == [
        ("train_batch_size", "1024"),
        ("train_micro_batch_size_per_gpu", "2"),
        ("zero_config", "stage=1 reduce_scatter=True x='a b'"),
        ("zero_config.stage", "1"),
        ("zero_config.reduce_scatter", "True"),
        ("zero_config.x", "a b"),
        ("Number of trainable parameters", "6738415616"),
        ("Gradient Accumulation steps", "32"),
        ("hidden_size", "4096"),
        ("sequence length", "4095"),
        ("global_batch_size", "1024"),
        ("micro_batch_size", "1"),
    ]


def test_ranks_and_checkpoints(read: Read) -> None:
    events = read(
        f"{STAMP}[Rank 0] hello",
        f"{STAMP}[Torch] Saving out/global_step500/bf16_zero_pp_rank_24_mp_rank_00_optim_states.pt...",
        f"{STAMP}Process rank: 3, device: cuda:3, n_gpu: 1",
        f"{STAMP}Saving model checkpoint to out/tmp-checkpoint-500",
        f"{STAMP}Saving model checkpoint to out",
        f"{STAMP}[Torch] Checkpoint global_step500 is ready now!",
        "[rank12]:[W0523 10:00:00.123 x.cpp:7] hello",
    )

    assert [_picked(event, "kind", "rank", "local_rank", "step") for event in events] == [
        ("rank", 0, None, None),
        ("rank", 24, None, None),
        ("local_rank", None, 3, None),
        ("checkpoint_start", None, None, 500),
        ("message", None, None, None),
        ("checkpoint_end", None, None, 500),
        ("message", None, None, None),
        ("rank", 12, None, None),
    ]


@pytest.mark.parametrize(
    "label", ["", "3: ", "[default7]:", "(Worker pid=7, ip=10.0.0.1) ", "[1,0]<stdout>:", "host-1: "]
)
def test_megatron_iterations_after_launcher_labels(read: Read, label: str) -> None:
    (event,) = read(label + MEGATRON)

    assert _picked(event, "kind", "step", "steps", "seconds", "samples", "loss", "learning_rate", "time_utc") == (
        "iteration", 7, 90, 10.1255, 64, 2.5, 1e-05, "2024-05-23 16:00:10",
    )  # fmt: skip


def test_megatron_without_time_with_other_keys_and_wrapped(read: Read) -> None:
    line = MEGATRON.replace("[2024-05-23 16:00:10] ", "").replace(" consumed", " consumed tokens: 9 | consumed")
    cut = line.index(" learning rate")

    (plain,) = read(line)
    (wrapped,) = read(line[:cut], line[cut:])

    assert _picked(plain, "step", "seconds", "loss", "time_utc") == (7, 10.1255, 2.5, None)
    assert _picked(wrapped, "step", "seconds", "loss", "learning_rate") == (7, 10.1255, 2.5, 1e-05)


def test_megatron_that_is_cut_inside_a_number_loses_that_number(read: Read, rejects: Rejects) -> None:
    event, damaged = read(MEGATRON[: MEGATRON.index("125.5")])

    assert _picked(event, "kind", "step", "seconds") == ("iteration", 7, None)
    assert damaged["kind"] == "damaged"
    assert len(rejects) == 1


def test_megatron_arguments_sizes_and_checkpoints(read: Read) -> None:
    events = read(
        "------------------------ arguments ------------------------",
        "  num_layers ...................................... 32",
        "  accumulate_allreduce_grads_in_fp32_and_a_long_name  True",
        "-------------------- end of arguments ---------------------",
        "  not_an_argument  True",
        "using world size: 32, data-parallel size: 4, tensor-model-parallel size: 8, pipeline-model-parallel size: 1 ",
        " > number of parameters on (tensor, pipeline) model parallel rank (3, 0): 841248768",
        "saving checkpoint at iteration      50 to out in torch format",
        "  successfully saved checkpoint at iteration      50 to out",
        "[before the start of training step] datetime: 2024-05-23 16:00:00 ",
    )

    assert [_picked(event, "name", "value") for event in events if event["kind"] == "config"] == [
        ("num_layers", "32"),
        ("accumulate_allreduce_grads_in_fp32_and_a_long_name", "True"),
        ("world_size", "32"),
        ("data_parallel_size", "4"),
        ("tensor_model_parallel_size", "8"),
        ("pipeline_model_parallel_size", "1"),
        ("parameters_on_rank_3_0", "841248768"),
    ]
    assert [_picked(event, "kind", "step", "time_utc") for event in events[-3:]] == [
        ("checkpoint_start", 50, None),
        ("checkpoint_end", 50, None),
        ("train_start", None, "2024-05-23 16:00:00"),
    ]


def test_levels_come_from_prefixes_not_from_words(read: Read) -> None:
    events = read(
        f"{STAMP}no error at all",
        "WARNING:torch.distributed.elastic.x: lost due to an error of type RendezvousTimeoutError.",
        "/usr/lib/x.py:12: UserWarning: old",
        "[W socket.cpp:601] [c10d] no name",
        "Traceback (most recent call last):",
        "torch.cuda.OutOfMemoryError: CUDA out of memory",
        "an Error: in a sentence",
        "[rank3]: torch.distributed.DistBackendError: NCCL error in x.cpp",
    )

    levels = [event["level"] for event in events if event["kind"] != "rank"]
    assert levels == ["INFO", "WARNING", "WARNING", "WARNING", "ERROR", "ERROR", "ERROR"]


def test_damage_is_rejected_with_its_line(read: Read, rejects: Rejects) -> None:
    events = read(
        raw=f"{ITERATION}\n{STAMP.replace('05-23', '02-30')}x\nlost \xff\x00\n{ITERATION[:-9]}".encode("latin-1")
    )

    assert [event["kind"] for event in events] == ["iteration", "damaged"]
    assert [(line, reason) for line, reason, _ in rejects] == [
        (2, "damaged: there is no such time"),
        (4, "torn: the file ends without a final newline"),
    ]


@pytest.mark.parametrize(
    ("line", "step", "seconds", "loss"),
    [
        (
            " consumed samples: 12 | iteration 6/ 10 | elpased time per iteration (ms): 1500.0 | loss: 2.5 |",
            6,
            1.5,
            2.5,
        ),
        (
            "[1716480000.5] iteration 6/10 | Step Time : 1.5s | tokens: 1.258B | eta: 0:00:00 | lm loss: 2.5 |",
            6,
            1.5,
            2.5,
        ),
        ("    [2024-08-12 10:00:00.123] iteration 6/10 | iteration time (s): 1.5 | lm_loss: 2.5E+00 |", 6, 1.5, 2.5),
        (
            "Training epoch 0, iteration 6/9 | global_step: 6 | reduced_train_loss: 2.5 | train_step_timing in s: 1.5",
            6,
            1.5,
            2.5,
        ),
        ("{'loss': ' 2.5', 'learning_rate': '1e-05 ', 'step': '6', 'epoch': '0.1'}", 6, None, 2.5),
        ("step 6: {'loss': 2.5, 'epoch': 0.1}", 6, None, 2.5),
        ("{'loss': 2.5, 'global_step/max_steps': '6/90', 'epoch': 0.1}", 6, None, 2.5),
    ],
)
def test_iterations_of_forks_and_of_others(
    read: Read, rejects: Rejects, line: str, step: int, seconds: float | None, loss: float
) -> None:
    (event,) = read(line)

    assert _picked(event, "kind", "step", "seconds", "loss") == ("iteration", step, seconds, loss)
    assert not rejects


def test_a_clock_in_epoch_seconds_is_a_time(read: Read) -> None:
    events = read(
        "[1716480000.5] iteration 6/10 | lm loss: 2.5 |", "iteration 7/10 | timestamp: 1716480007 | lm loss: 2.5 |"
    )

    assert [event["time_utc"] for event in events] == ["2024-05-23 16:00:00.500000", "2024-05-23 16:00:07.000000"]


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (" validation loss at iteration 1000 | lm loss value: 2.3E+00 | lm loss PPL: 1.0E+01 |", 1000),
        ("{'eval_loss': 1.2, 'eval_runtime': 3.4, 'epoch': 1.0}", None),
        ("Validation: iteration 1/8", 1),
        ("Evaluating iter 3/10", 3),
        ("Validation DataLoader 0:  50%|#####     | 1/2 [00:01<00:01, 1.00it/s]", 1),
        (f"{STAMP}***** Running Evaluation *****", None),
    ],
)
def test_an_evaluation_is_an_event_of_its_own(read: Read, rejects: Rejects, line: str, step: int | None) -> None:
    (event,) = read(line)

    assert _picked(event, "kind", "step") == ("evaluation", step)
    assert not rejects


@pytest.mark.parametrize(
    "line",
    [
        "pytorch_model.bin: 100%|##########| 1.2G/1.2G [00:10<00:00, 120MB/s]",
        "Downloading shards: 100%|##########| 2/2 [00:10<00:00,  5.0s/it]",
        "Map: 100%|##########| 100/100 [00:10<00:00,  10 examples/s]",
        " time (ms) | forward: 1.2 | backward: 2.3",
    ],
)
def test_a_download_is_not_training(read: Read, rejects: Rejects, line: str) -> None:
    assert read(line) == []
    assert not rejects


@pytest.mark.parametrize(
    ("line", "step", "seconds"),
    [
        (" 10% 9/90 [00:05<?, ?it/s]", 9, None),
        ("foo bar  5%|# | 9/90 [100:00:10<200:00:00, 72.1s/it]", 9, 72.1),
        ("Steps:  10%|#| 9/90 [00:05<00:30,  2.0step/s, lr=1e-5, step_loss=0.5]", 9, 0.5),
        ("  8%|# | 8/90 [01:10<14:00, 10.10s/it]  9%|# | 9/90 [01:10<14:00, 10.10s/it]", 9, 10.1),
        ("Epoch 1:  10%|#| 9/90 [9:07:58<878:01:48, 41.36s/it, v_num=, reduced_train_loss=3.090]", 99, 41.36),
    ],
)
def test_bars_of_odd_forms(read: Read, rejects: Rejects, line: str, step: int, seconds: float | None) -> None:
    *_, event = read(line)

    assert _picked(event, "kind", "step", "seconds") == ("progress", step, seconds)
    assert not rejects


@pytest.mark.parametrize(
    "line",
    [
        BAR[: BAR.index("14:00")],
        BAR[: BAR.index("'epoch'")],
        "{'loss': 2.5, 'learning_rate': 1e-0",
        ITERATION[: len(STAMP) + 40],
        " consumed samples: 12 | elapsed time per iteration (ms): 15.0 | learning rate: 1E-5 | lm loss: 2.5 |",
    ],
)
def test_an_incomplete_iteration_is_counted(read: Read, rejects: Rejects, line: str) -> None:
    *kept, event = read(line)

    assert event["kind"] == "damaged"
    assert {one["kind"] for one in kept} <= {"progress"}
    assert [number for number, _, _ in rejects] == [1]


def test_flipped_bytes_are_counted(read: Read, rejects: Rejects) -> None:
    lines = [MEGATRON.replace(" 7/", f" {step}/") for step in range(1, 41)]
    for step in range(1, 41, 5):
        at = MEGATRON.index("elapsed") + step
        lines[step] = lines[step][:at] + "\x07" + lines[step][at + 1 :]
    events = read(*lines)

    steps = {event["step"] for event in events if event["kind"] == "iteration"}
    damaged = {event["line"] for event in events if event["kind"] == "damaged"}
    assert len(steps) + len(damaged - {event["line"] for event in events if event["kind"] == "iteration"}) == 40


@pytest.mark.parametrize("end", [MEGATRON, MEGATRON.partition(" number of skipped")[0]])
def test_wrapped_lines_are_joined(read: Read, end: str) -> None:
    lines = [end.replace(" 7/", f" {step}/").replace("2.5000", f"{step}.5000") for step in range(1, 9)]
    wrapped = [line[at : at + 80] for line in lines for at in range(0, len(line), 80)]
    events = read(*wrapped)

    assert [_picked(event, "kind", "step", "loss") for event in events] == [
        ("iteration", step, step + 0.5) for step in range(1, 9)
    ]
    assert [event["line"] for event in events] == [1 + -(-len(end) // 80) * place for place in range(8)]


def test_a_dictionary_behind_a_bar_that_fills_the_width_is_joined(read: Read) -> None:
    stamp, total = "2024-05-23T16:00:00.123456789Z", 12
    lines = [
        f"{stamp}{100 * step // total:3d}%|{'#' * (step - 1):<11}| {step}/{total} [00:07<1:02:03,  7.01s/it]"
        f"{{'loss': '{step}.5', 'grad_norm': ' 1.25', 'learning_rate': '1e-05', 'epoch': '0.01'}}"
        for step in range(1, total + 1)
    ]
    assert lines[-1][:80].endswith("s/it]")

    events = read(*(line[at : at + 80] for line in lines for at in range(0, len(line), 80)))

    assert [_picked(event, "kind", "step", "loss") for event in events] == [
        ("progress", step, step + 0.5) for step in range(1, total + 1)
    ]


def test_a_repeated_value_in_an_iteration_is_damage_on_both_paths(read: Read, rejects: Rejects) -> None:
    line = (
        " iteration        1/     500 | consumed samples:          512 | elapsed time per iteration (ms): 26000.1 | "
        "learning rate: 5.800000E-05 | global batch size:   512 | loss scale: 1.0 | loss scale: 2.0 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |"
    )

    assert [event["kind"] for event in read(line)] == ["iteration", "damaged"]
    assert [reason for _, reason, _ in rejects] == ["damaged: an iteration with one value twice"]


@pytest.mark.parametrize(
    ("rate", "seconds"), [("2.00it/s", 0.5), ("45.78s/it", 45.78), ("0.00it/s", None), ("0.00s/it", 0.0)]
)
def test_a_bar_has_its_rate_in_either_unit(read: Read, rate: str, seconds: float | None) -> None:
    [event] = read(f"  3%|3         | 30/1000 [00:30<16:10,  {rate}]")

    assert (event["kind"], event["step"], event.get("seconds")) == ("progress", 30, seconds)


@pytest.mark.parametrize(
    ("line", "label", "family", "step", "loss"),
    [
        ("host-1: Epoch 2/3:  10%|#| 9/90 [00:05<00:40, 2.0s/it, loss=2.5]", "host-1:", "lightning", 99, 2.5),
        ("[Training epoch 2]: 10%|#| 9/90 [00:05<00:40, 2.0s/it, lr=1e-5]", None, "lightning", 189, None),
        ("host-1:  10%|#| 9/90 [00:05<00:40, 2.0s/it] {'train_loss': '2.5'}", "host-1:", "hf_trainer", 9, 2.5),
        ("1|9|Loss: 2.5:  10%|#| 9/90 [00:05<00:40, 2.0s/it]", None, "torchtune", 9, 2.5),
    ],
)
def test_bars_with_a_description(
    read: Read, line: str, label: str | None, family: str, step: int, loss: float | None
) -> None:
    """The same for lines that differ in their digits, which are parsed once."""
    events = read(line, line.replace(" 9/", " 8/"))

    assert [_picked(event, "label", "family", "step", "loss", "seconds") for event in events] == [
        (label, family, step, loss, 2.0),
        (label, family, step - 1, loss, 2.0),
    ]


def test_bars_of_nemo_have_no_rate_and_two_colons(read: Read, rejects: Rejects) -> None:
    bar = "10%|#         | 10/100 [00:30<04:30, v_num=1, reduced_train_loss=9.500, global_step=9.000"

    [one, later] = read(
        f"Epoch 0: :  {bar}, train_step_timing in s=3.100]",
        f"Epoch 2: :  {bar}]",
        "Validation: :  50%|#####     | 1/2 [00:01<00:01, v_num=1]",
        "Epoch 0: :  10%|#         | 10/100 [00:30<04:30]",
    )[:2]

    assert (one["family"], one["kind"], one["step"], one["loss"], one["seconds"]) == (
        "lightning",
        "progress",
        10,
        9.5,
        3.1,
    )
    assert (later["step"], "seconds" in later) == (210, False)
    assert not rejects


@pytest.mark.parametrize("line", [ITERATION, BAR])
def test_all_digits_of_a_learning_rate_are_read(read: Read, line: str) -> None:
    (event,) = read(line.replace("1e-05", "0.00010000929999999999"))

    assert event["learning_rate"] == 0.00010000929999999999


@pytest.mark.parametrize(
    "line", ["step: 10  loss: 2.9RF5  memory", "{'loss': 2.9RF5, 'step': 14}", "step 7 loss 2.9x5"]
)
def test_a_part_of_a_damaged_number_is_not_its_value(read: Read, line: str) -> None:
    assert not any("loss" in event for event in read(line))
