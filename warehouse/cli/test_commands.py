"""Command `warehouse test`: unit tests of models, and examples of log lines and of job traces."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

from warehouse.cli.options import PROJECT, command, flag, option, settings


@command(
    "test",
    "run the tests of models and the examples of logs and traces; needs no data",
    "warehouse test\n  warehouse test metrics.leaf_hour 'topology.*'",
    option("select", metavar="SEL", nargs="*", help="only these models: a name, a layer, a glob, +name, name+"),
    PROJECT,
    flag("--quiet", "print only failures"),
)
def run_tests(given: argparse.Namespace) -> int:
    """Run tests and print the failures; return 1 if a test fails."""
    from warehouse.base.settings import shipped_root
    from warehouse.base.text import on_one_line, plural
    from warehouse.engine.duckdb import DuckDBEngine
    from warehouse.graph.dag import load_graph, select_models
    from warehouse.project.project import Project
    from warehouse.quality.model_tests import example_tests, failed_examples, run_test, tests_of
    from warehouse.store.atomic import scratch_folder

    project = Project.open(settings(given).project)
    passed, failed, models, examples = 0, 0, 0, 0
    if not given.select and (project.log_lines or shipped_root() in project.folders):
        examples, wrong = failed_examples(project.log_lines)
        failed, passed = len(wrong), examples - len(wrong)
        sys.stderr.writelines(on_one_line(line) + "\n" for line in wrong)
    with closing(DuckDBEngine(memory_bytes=2**29, spill=Path("spill"))) as engine, scratch_folder("test") as folder:
        graph = load_graph(project, engine)
        chosen = select_models(graph, given.select)
        of_traces = [test for trace in project.traces if trace.examples for test in example_tests(trace, graph, folder)]
        for name in (one for one in graph.order if one in chosen):
            tests = tests_of(graph.nodes[name], graph) + [test for test in of_traces if test.model == name]
            models += bool(tests)
            for test in tests:
                found = run_test(engine, graph, test)
                failed, passed = failed + bool(found), passed + (not found)
                if found:
                    sys.stderr.write(on_one_line(f"{test.place}: {test.model}: {test.name}") + "\n")
                    for line in found:
                        sys.stderr.write(on_one_line(f"       {line}") + "\n")
    if failed or not given.quiet:
        text = f"{plural(passed, 'test')} passed" + (f", {failed:,} failed" if failed else "")
        of = f"{plural(models, 'model')}" + (f" and {plural(examples, 'kind')} of log lines" if examples else "")
        print(f"Test   {text}, of {of}")
    return 1 if failed else 0
