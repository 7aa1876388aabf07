"""The Ray that a sweep runs on: one that is started here and listens only on loopback, or a cluster."""

import atexit
import contextlib
import dataclasses
import logging
import os
import pathlib
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trainers.sweeps.private import keep_ray_silent, refresh_ray
from trainers.system import signals
from trainers.system.environment import git_revision, this_machine, versions
from trainers.system.errors import ConfigError

ADDRESS, TOKEN, AUTO = "RAY_ADDRESS", "RAY_AUTH_TOKEN", "auto"
ANSWER_SECONDS = 5.0  # for an address to answer
CONNECT_SECONDS = 30.0  # for a cluster to accept this machine
CONNECTING = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='error')"
REFUSED = re.compile("AuthToken|AuthenticationError|Unauthenticated")  # what Ray says to a wrong token, and to none
WRONG_TOKEN = "a wrong or no token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
NODE_SECONDS = 120.0  # for a node to import this package and look at its folder
SECRET = secrets.token_hex(32)  # the token of a Ray that is started here, in no file that others may read
MEMORY = 100 * 2**20  # of Ray's store of objects, which sweeps hardly use
SHARES = 10_000  # Ray counts GPUs in ten-thousandths
# Of a Ray that is started here.
LOCAL = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listens on loopback only
    "RAY_worker_niceness": "0",  # workers run at normal priority
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
}


@dataclasses.dataclass(frozen=True)
class Room:
    """What a Ray has for the trials of a sweep."""

    workers: int | None  # how many trials may run at once; None for as many as fit
    cpus: float  # that each trial takes
    gpus: float  # a fraction of a GPU is shared with other trials
    door: str = ""  # the socket of this machine's own node; empty if it is not known

    def fits(self, resources: Mapping[str, float]) -> bool:
        """Whether a node with these resources has enough for a trial."""
        return resources.get("CPU", 0.0) >= self.cpus and resources.get("GPU", 0.0) >= self.gpus


def cluster_address(settings: Any) -> str | None:
    """The address of the cluster to use, None for this machine alone."""
    return settings.ray_address or os.environ.get(ADDRESS) or None


@contextlib.contextmanager
def connected(settings: Any) -> Iterator[Room]:
    """Inside, Ray is connected. One that is started here ends with the block, even if this process is killed.

    Raises:
        ConfigError: Ray is not installed or does not answer, or a node cannot run trials.
    """
    address = cluster_address(settings)
    if "ray" in sys.modules and import_ray().is_initialized():  # by the caller of `trainers.sweep.run`
        yield _room(settings)
    elif address is None:
        with started(settings.workers * settings.cpus_per_trial) as ray:
            yield _room(settings, ray.door)
    else:
        door = _connect(address)
        try:
            room = _room(settings, door)
            _check_nodes(settings, room)
            yield room
        finally:
            if is_open(door):
                import_ray().shutdown()
            else:  # it would end this process in the middle of what it has to say
                atexit.unregister(import_ray().shutdown)


class Started(NamedTuple):
    """A Ray on this machine: the environment by which other programs find it, and the socket of its node."""

    environment: dict[str, str]
    door: str


@contextlib.contextmanager
def started(cpus: float) -> Iterator[Started]:
    """Inside, a new Ray runs on this machine."""
    mine = {**LOCAL, TOKEN: os.environ.get(TOKEN) or SECRET}
    with _environment(mine):
        ray = import_ray()
        refresh_ray()
        try:
            info = _init(address="local", num_cpus=cpus, include_dashboard=False, object_store_memory=MEMORY)
        except Exception as error:
            raise ConfigError(f"Ray must be able to start on this machine. Received: {last_line(error)}") from error
        try:
            yield Started({**mine, ADDRESS: info.address_info["gcs_address"]}, info.address_info["raylet_socket_name"])
        finally:
            ray.shutdown()


def import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "--workers above 1 and --ray_address need Ray: pip install -e '.[ray]'. Received: Ray is not installed"
        ) from error
    return ray


def _connect(address: str) -> str:
    """Connects, and returns the socket of this machine's own node."""
    rule = "--ray_address must be the host:port of a Ray cluster, or auto"
    host, _, port = address.rpartition(":")
    if address != AUTO:
        if not (host and port.isdecimal()) or "/" in host:
            raise ConfigError(f"{rule}. Received: {address!r}")
        try:
            socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise ConfigError(f"{rule}. Received: {address!r}, which does not answer ({error})") from error
    problem = _problem_of_connecting(address)
    if problem:
        raise ConfigError(f"{rule}. Received: {address!r} ({problem})")
    try:
        return str(_init(address=address).address_info["raylet_socket_name"])
    except Exception as error:  # it has ended in the meantime
        raise ConfigError(f"{rule}. Received: {address!r} ({last_line(error)})") from error


def _problem_of_connecting(address: str) -> str:
    """Why this machine cannot connect, found by another process: Ray itself tries for minutes without a limit."""
    command, said = [sys.executable, "-c", CONNECTING, address], ""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, errors="replace") as asking:
        limit = threading.Timer(CONNECT_SECONDS, asking.kill)
        limit.start()
        try:
            for line in asking.stderr or ():
                if REFUSED.search(line):  # Ray goes on asking
                    return WRONG_TOKEN
                said = line.strip() or said
            code = asking.wait()
        finally:
            limit.cancel()
            asking.kill()
    if code == -signal.SIGKILL:
        return f"it does not answer within {CONNECT_SECONDS:g} s"
    return (said or f"exit code {code}") if code else ""


def _init(**options: Any) -> Any:
    with signals.postponed():
        # Ray's processes inherit this, and so outlive a signal to all of the group until the trials are saved. Ray
        # itself does the same for Ctrl-C.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            info = import_ray().init(log_to_driver=False, logging_level="error", **options)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            signals.keep_listening()  # Ray replaces the handler of SIGTERM
    keep_ray_silent()
    logging.getLogger("ray").setLevel(logging.ERROR)
    return info


def last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)


def _room(settings: Any, door: str = "") -> Room:
    """How many trials may run at once, and what each of them takes; a `ConfigError` if no node has enough for one."""
    ray, address, gpus = import_ray(), cluster_address(settings), settings.gpus_per_trial
    if gpus is None:
        total = ray.cluster_resources().get("GPU", 0.0)
        gpus = min(total, 1.0) if address else gpu_share(total, settings.workers)
    workers = None if address and settings.workers == 1 else settings.workers
    room = Room(workers, settings.cpus_per_trial, gpus, door)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(room.fits(node) for node in nodes):
        most = {name: max((node.get(name, 0.0) for node in nodes), default=0.0) for name in ("CPU", "GPU")}
        raise ConfigError(
            "--cpus_per_trial and --gpus_per_trial must not exceed what a node of the cluster has. "
            f"Received: {room.cpus:g} CPUs and {room.gpus:g} GPUs, and no node has more than {most['CPU']:g} CPUs "
            f"and {most['GPU']:g} GPUs"
        )
    return room


def is_open(door: str) -> bool:
    """Whether the node of this machine is alive. Ray itself needs a minute to notice, and then ends the process."""
    if not door:
        return True
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(door) == 0


def gpu_share(gpus: float, workers: int) -> float:
    """The GPUs of each of several workers on one machine: whole ones, or a part of one.

    >>> gpu_share(8, 2), gpu_share(8, 3), gpu_share(2, 3), gpu_share(0, 2)
    (4.0, 2.0, 0.6666, 0.0)
    """
    return float(gpus // workers) if gpus >= workers else int(SHARES * gpus / workers) / SHARES


def free_places(room: Room) -> int:
    """How many more trials the cluster may have room for at the moment."""
    free = import_ray().available_resources()
    each = {"CPU": room.cpus, "GPU": room.gpus}
    return int(min(free.get(name, 0.0) // share for name, share in each.items() if share))


def surroundings() -> dict[str, Any]:
    """What results depend on besides flags and data, on this node."""
    return {"Python": this_machine()["python"], **versions(), "git revision": git_revision()}


def differences(expected: Mapping[str, Any], output_dir: str, seen: str) -> str:
    """What keeps this node from running trials of a sweep, in words; empty if nothing does.

    Args:
        expected: The surroundings of the process that runs the sweep.
        output_dir: The folder of the sweep.
        seen: A path that this node must see.
    """
    here = surroundings()
    names = [name for name in {**expected, **here} if here.get(name) != expected.get(name)]
    wrong = [f"{name} {here.get(name)} instead of {expected.get(name)}" for name in names]
    if not os.path.exists(seen):
        wrong.append(f"no --output_dir={output_dir}")
    return f"{socket.gethostname()} has {', '.join(wrong)}" if wrong else ""


def _check_nodes(settings: Any, room: Room) -> None:
    """Raises a `ConfigError` if a node lacks the folder, or has other versions of what results depend on."""
    ray = import_ray()
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"] and room.fits(node["Resources"])]
    look = ray.remote(num_cpus=0, max_retries=0)(differences)
    folder = pathlib.Path(settings.output_dir).absolute()
    existing = next(each for each in (folder, *folder.parents) if each.is_dir())
    with tempfile.NamedTemporaryFile(prefix=".tfwarmup-", dir=existing) as probe, signals.postponed():
        asked = {}
        for node in nodes:
            place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            answer = look.options(scheduling_strategy=place).remote(surroundings(), settings.output_dir, probe.name)
            asked[answer] = node["NodeManagerHostname"]
        for answer, name in asked.items():
            try:
                wrong = ray.get(answer, timeout=NODE_SECONDS)
            except ray.exceptions.TaskUnschedulableError:  # the node has left in the meantime
                continue
            except ray.exceptions.RayError as error:
                wrong = f"{name} ({last_line(error)})"
            if wrong:
                rule = "Every node must have this checkout, its packages, and --output_dir at the same paths"
                raise ConfigError(f"{rule}. Received: {wrong}")
