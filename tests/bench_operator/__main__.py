"""`make bench-operator`: runs on simulated nodes, one project each; Jobs a second beside a bare client on the same cluster."""

from __future__ import annotations

import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

from assay_operator.job import JobSettings, build_job
from assay_operator.resource import GROUP, PLURAL, VERSION, Object
from tests.bench.table import HEADING, Line
from tests.bench_operator.load import THREADS, a_run, create_all, creator_of_jobs, creator_of_runs
from tests.bench_operator.rig import OperatorProcess, operator
from tests.bench_operator.watching import Seen, Watcher

PER_S, STEADY_S = 30.0, 30.0
_LIMIT_S = 600.0
_SPEAK_S = 5.0


def main() -> None:
    """Every section, as it is measured. The environment's KUBECONFIG names a cluster that nobody else uses."""
    kubeconfig = os.environ["KUBECONFIG"]
    settings = client.Configuration()
    config.load_kube_config(kubeconfig, client_configuration=settings)
    settings.connection_pool_maxsize = THREADS + 4
    api = client.ApiClient(settings)
    _define(api)
    say(_rig(api))
    say(HEADING)
    bare = bare_jobs(api, 1_000)
    with operator(kubeconfig) as served:
        for line in at_once(api, served, 1_000, bare=bare):
            say(line.text())
        for line in steady(api, served):
            say(line.text())
        for line in at_once(api, served, 5_000, bare=bare):
            say(line.text())
        for line in restarted(api, served, 5_000):
            say(line.text())


def bare_jobs(api: client.ApiClient, count: int) -> float:
    """Jobs a second that a bare client creates: the same Jobs, and nothing else."""
    namespace = _namespace(api, "bare")
    jobs = JobSettings(image="localhost/simulated:1", max_duration_s=3_600, retention_s=172_800)
    bodies = []
    for number in range(count):
        run = a_run(namespace, f"r{number}")
        run["metadata"] |= {"uid": f"00000000-0000-4000-8000-{number:012d}", "generation": 1}
        body = build_job(Object.read(run), project_id="p", attempt=1, replay=False, settings=jobs)
        # Without an owner, which is not there: the garbage collector would take the Job away again.
        body["metadata"].pop("ownerReferences", None)
        bodies.append(body)
    with Watcher(api, namespace) as seen:
        began = time.monotonic()
        create_all(creator_of_jobs(api, namespace), bodies)
        took = time.monotonic() - began
        _wait(lambda: len(seen.over), count, what="Jobs of the bare client over")
    return count / took


def at_once(api: client.ApiClient, served: OperatorProcess, count: int, *, bare: float) -> Iterator[Line]:
    """All runs as fast as they can be created."""
    namespace, what = _namespace(api, f"once-{count}"), f"{count:,} runs at once"
    with Watcher(api, namespace) as seen:
        began = time.monotonic()
        created = create_all(
            creator_of_runs(api, namespace), [a_run(namespace, f"r{n}") for n in range(count)]
        )
        _wait(lambda: len(seen.created), count, what="Jobs")
        rate = count / (max(seen.created.values()) - began)
        yield Line(
            what=f"{what}: seconds per 1,000 Jobs", ours=1_000 / rate, theirs=1_000 / bare, unit="s", goal=2.0
        )
        _wait(lambda: len(seen.told), count, what="runs ended")
        total = max(seen.told.values()) - began
        yield Line(
            what=f"{what}: first run created to last run ended",
            ours=total,
            theirs=None,
            unit="s",
            goal=max(count / 40, 30),
        )
        yield from _latencies(what, seen, created, goal_of_jobs=None)
        yield Line(
            what=f"{what}: resident memory at most", ours=served.peak_mib(), theirs=None, unit="MiB", goal=200
        )
        yield _duplicates(what, seen)


def steady(api: client.ApiClient, served: OperatorProcess) -> Iterator[Line]:
    """A fixed number of runs each second."""
    namespace, what, count = _namespace(api, "steady"), f"{PER_S:g} runs/s", int(PER_S * STEADY_S)
    with Watcher(api, namespace) as seen:
        bodies = [a_run(namespace, f"r{number}") for number in range(count)]
        created = create_all(creator_of_runs(api, namespace), bodies, per_s=PER_S)
        _wait(lambda: len(seen.told), count, what="runs ended")
        yield from _latencies(what, seen, created, goal_of_jobs=1.0)
        yield _duplicates(what, seen)


def restarted(api: client.ApiClient, served: OperatorProcess, count: int) -> Iterator[Line]:
    """Killed while runs go on, and started again: until every run has been looked at, and until all have ended."""
    namespace, what = _namespace(api, f"restart-{count}"), f"killed among {count:,} runs"
    with Watcher(api, namespace) as seen:
        create_all(creator_of_runs(api, namespace), [a_run(namespace, f"r{n}") for n in range(count)])
        _wait(lambda: len(seen.created), count // 2, what="Jobs before the kill")
        served.kill()
        time.sleep(2)
        before = len(seen.created)
        began = time.monotonic()
        served.start()
        served.wait_ready()
        _wait(lambda: len(seen.created), count, what="Jobs after the kill")
        resynced = time.monotonic() - began
        say(f"  {before:,} Jobs were there at the kill")
        yield Line(
            what=f"{what}: restart to a Job for every run", ours=resynced, theirs=None, unit="s", goal=60
        )
        _wait(lambda: len(seen.told), count, what="runs ended")
        yield Line(
            what=f"{what}: resident memory at most", ours=served.peak_mib(), theirs=None, unit="MiB", goal=200
        )
        yield _duplicates(what, seen)


def _latencies(
    what: str, seen: Seen, created: dict[str, float], *, goal_of_jobs: float | None
) -> Iterator[Line]:
    to_job = sorted(seen.created[name] - at for name, at in created.items())
    to_status = sorted(seen.told[name] - at for name, at in seen.over.items() if name in seen.told)
    for percent in (50, 99):
        at = _percentile(to_job, percent)
        yield Line(
            what=f"{what}: run created → Job, p{percent}",
            ours=at,
            theirs=None,
            unit="s",
            goal=goal_of_jobs or math.inf,
        )
    for percent in (50, 99):
        at = _percentile(to_status, percent)
        yield Line(what=f"{what}: Job over → status, p{percent}", ours=at, theirs=None, unit="s", goal=2.0)


def _duplicates(what: str, seen: Seen) -> Line:
    more = sum(len(uids) - 1 for uids in seen.jobs.values()) + sum(
        attempt > 1 for attempt in seen.attempts.values()
    )
    return Line(what=f"{what}: Jobs too many", ours=more, theirs=None, unit="", goal=0)


def _percentile(values: list[float], percent: int) -> float:
    return values[min(len(values) - 1, math.ceil(len(values) * percent / 100) - 1)]


def _wait(count: Callable[[], int], wanted: int, *, what: str) -> None:
    """With progress, until there are as many or the limit is over."""
    end, spoke = time.monotonic() + _LIMIT_S, time.monotonic()
    while count() < wanted:
        if time.monotonic() > end:
            raise AssertionError(f"{what}: {count()} of {wanted} within {_LIMIT_S:g} s")
        if time.monotonic() - spoke > _SPEAK_S:
            spoke = time.monotonic()
            sys.stderr.write(f"  {what}: {count():,} of {wanted:,}\n")
        time.sleep(0.05)


def _define(api: client.ApiClient) -> None:
    """The resource, until it is served."""
    extensions: Any = client.ApiextensionsV1Api(api)  # its stubs ask for models; dicts go as well
    for path in sorted((Path(__file__).parents[2] / "crds").glob("*.yaml")):
        extensions.create_custom_resource_definition(yaml.safe_load(path.read_text()))
    custom = client.CustomObjectsApi(api)
    for _ in range(100):
        try:
            custom.list_cluster_custom_object(GROUP, VERSION, PLURAL, limit=1)
        except client.ApiException:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the resource is not served within 10 s")


def _namespace(api: client.ApiClient, name: str) -> str:
    made = f"bench-{name}"
    client.CoreV1Api(api).create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=made)))
    return made


def _rig(api: client.ApiClient) -> str:
    version = client.VersionApi(api).get_code().git_version
    nodes = client.CoreV1Api(api).list_node(label_selector="type=kwok").items
    memory = Path("/proc/meminfo").read_text().split()[1]
    return (
        f"rig: {os.cpu_count()} cores, {int(memory) // 2**20} GiB, {platform.python_implementation()} {platform.python_version()}, "
        f"Kubernetes {version}, {len(nodes)} simulated nodes whose pods end at once; operator and watcher are processes beside it, "
        f"MongoDB's stand-in, no vector server. No agent runs: each attempt is judged as CompletedWithoutResult, a store write more "
        f"than a success."
    )


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
