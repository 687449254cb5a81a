"""The measured process: `python -m benchmarks.table2.worker JOB`.

A job names a copy of the transformers package, a build and some runs. Every run is a fork of its own: the library
remembers what it has already warned about (`warning_once` is cached for good), Dynamo remembers what it compiled, and
neither may leak from one run into the next. Only the imports are shared.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.table2.builds import BUILDS, Build
from benchmarks.table2.records import CallRecord, Compilation, Messages, Raised, RunRecord
from benchmarks.table2.runs import RUNS, Run

MODEL_SEED = 0
CALL_SEED = 7
RUN_LIMIT = 1800
"""Seconds after which a run is ended: Inductor compiles the largest build in well under half of it."""


@dataclass(frozen=True)
class Job:
    """What one worker does.

    Attributes:
        tree: folder that holds the measured `transformers` package.
        build: name of the build.
        store: folder for weights and records; the weights are shared by all workers of a build.
        side: subfolder for this worker's records.
        runs: names of the runs, in order.
        prepare: save weights and inputs first.
    """

    tree: str
    build: str
    store: str
    side: str
    runs: tuple[str, ...]
    prepare: bool = False

    def write(self, path: Path) -> None:
        """Writes the job for `read`."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Job:
        """Reads a job that `write` wrote."""
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Job(**{**fields, "runs": tuple(fields["runs"])})

    @property
    def weights(self) -> Path:
        """Where weights and inputs are kept."""
        return Path(self.store) / "weights.pt"

    def record(self, run: str) -> Path:
        """Where the record of a run is kept."""
        return Path(self.store) / self.side / f"{run}.pickle"


def use_tree(tree: str) -> Path:
    """Puts the copied package first on the path, and makes sure that it is the one imported."""
    sys.path.insert(0, tree)
    import transformers

    root = Path(transformers.__file__).resolve().parent
    if root != (Path(tree) / "transformers").resolve():
        raise RuntimeError(f"transformers was imported from {root}, not from the copy in {tree}")
    return root


def make_model(build: Build, weights: Path | None) -> Any:
    """The build's model in evaluation mode, with the saved weights."""
    import torch

    from benchmarks.table2.observe import seed

    seed(MODEL_SEED)
    model = build.make().eval()
    if weights is not None:
        model.load_state_dict(torch.load(weights)["weights"], strict=True)
    return model


def prepare(job: Job) -> None:
    """Saves the weights and inputs that every run of this build uses."""
    import torch

    build = BUILDS[job.build]
    torch.save({"weights": make_model(build, None).state_dict(), "calls": build.calls()}, job.weights)


def enter(model: Any, run: Run) -> Callable[..., Any]:
    """The model as this run calls it."""
    import torch

    from benchmarks.table2.dynamo import run_graph

    if run.entry == "eager":
        return model
    backend: Any = run_graph if run.backend == "count" else run.backend
    if run.entry == "torch":
        return torch.compile(model, backend=backend, fullgraph=run.fullgraph)
    import graphmend

    return graphmend.compile(model, backend=backend, fullgraph=run.fullgraph)


def backward(model: Any, outputs: Any) -> None:
    """A backward pass from every output that has a history.

    The weights of the sum vary, because outputs of a normalisation sum to nearly nothing.
    """
    import torch

    from benchmarks.table2.observe import leaves

    total = torch.zeros(())
    for _, value in leaves(outputs):
        if isinstance(value, torch.Tensor) and value.requires_grad:
            weights = torch.cos(torch.arange(value.numel(), dtype=torch.float32)).reshape(value.shape)
            total = total + (value.float() * weights).sum()
    model.zero_grad(set_to_none=True)
    total.backward()


def measure_call(
    target: Callable[..., Any], model: Any, arguments: dict[str, Any], run: Run, recorder: Any, watch: Any
) -> CallRecord:
    """Makes one call and records everything around it."""
    import torch

    from benchmarks.table2.observe import (
        alias_groups,
        freeze,
        leaves,
        random_state,
        record_tensor,
        sample,
        state_leaves,
    )

    recorder.take()
    if watch:
        watch.start()
    outputs, raised = (), None
    with torch.set_grad_enabled(run.gradients):
        try:
            outputs = target(**arguments)
        except Exception as error:  # noqa: BLE001 - whatever leaves the model is what is recorded
            raised = Raised(type(error).__qualname__, repr(error.args), str(error))
    compilation: Compilation | None = watch.take() if watch else None
    if run.gradients and not raised:
        backward(model, outputs)
    messages: Messages = recorder.take()
    gradients = {
        name: "None" if parameter.grad is None else replace(record_tensor(parameter.grad), value=sample(parameter.grad))
        for name, parameter in (model.named_parameters() if run.gradients else ())
    }
    everything = [
        *leaves(outputs, "output"),
        *leaves(arguments, "argument"),
        *state_leaves(model),
    ]
    return CallRecord(
        outputs=freeze(leaves(outputs), keep=not run.gradients),
        aliases=alias_groups(everything),
        arguments=freeze(leaves(arguments)),
        state=freeze(state_leaves(model)),
        gradients=gradients,
        random=random_state(),
        messages=messages,
        raised=raised,
        compilation=compilation,
    )


def to_double(value: Any) -> Any:
    """Floating tensors in float64."""
    import torch

    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def perform(job: Job, run: Run) -> RunRecord:
    """Makes all calls of one run."""
    import torch

    from benchmarks.table2.dynamo import Watch
    from benchmarks.table2.observe import Recorder, seed

    recorder = Recorder((Path(job.tree) / "transformers").resolve())
    recorder.install(always=run.always)
    use_tree(job.tree)
    recorder.adopt("transformers")
    build = BUILDS[job.build]
    model = make_model(build, job.weights)
    calls = torch.load(job.weights)["calls"]
    watched = model
    if run.failing:
        failure = build.failure()
        calls = [failure.arguments]
        watched = model.get_submodule(failure.submodule(model)) if failure.submodule else model
    if run.double:
        watched = model.double()
        calls = [{key: to_double(value) for key, value in arguments.items()} for arguments in calls]
    recorder.adopt("transformers")
    importing = recorder.take()
    watch = Watch(recorder) if run.entry != "eager" else None
    target = enter(watched, run)
    seed(CALL_SEED)
    records = [measure_call(target, watched, copy.deepcopy(call), run, recorder, watch) for call in calls]
    return RunRecord(run.name, tuple(records), importing)


def in_fork(work: Callable[[], None]) -> int:
    """Does the work in a child of its own, and returns the child's exit status."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(RUN_LIMIT)
            work()
            status = 0
        except BaseException:  # noqa: BLE001 - the parent must not continue in the child
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_job(job: Job) -> None:
    """Performs the job's runs, each in a fork of its own."""
    (Path(job.store) / job.side).mkdir(parents=True, exist_ok=True)
    runs = [RUNS[name] for name in job.runs]

    def keep(run: Run) -> None:
        if run.cache:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(job.store) / job.side / f"cache-{run.cache}")
        try:
            record = perform(job, run)
        except Exception:  # noqa: BLE001 - a run that cannot be made is a result
            record = RunRecord(run.name, error=traceback.format_exc())
        with job.record(run.name).open("wb") as file:
            pickle.dump(record, file)

    import torch
    import torch._dynamo

    if any(run.backend == "inductor" for run in runs):
        import torch._inductor.compile_fx  # noqa: F401 - imported once, before the forks
    if job.prepare:

        def first() -> None:
            use_tree(job.tree)
            prepare(job)

        if in_fork(first):
            raise RuntimeError(f"{job.build}: the model cannot be built")
    for index, run in enumerate(runs):
        if index == 1:
            # The first run imports the library itself, so that what importing says is recorded once.
            use_tree(job.tree)
            module = BUILDS[job.build].modeling.removesuffix(".py").replace("/", ".")
            importlib.import_module(f"transformers.{module}")
        status = in_fork(lambda run=run: keep(run))
        if status:
            with job.record(run.name).open("wb") as file:
                pickle.dump(RunRecord(run.name, error=f"the process ended with status {status}"), file)


if __name__ == "__main__":
    run_job(Job.read(Path(sys.argv[1])))
