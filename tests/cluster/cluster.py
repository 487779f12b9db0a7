#!/usr/bin/env python3
"""A real one-node Kubernetes in a network namespace of its own, from the binaries of build.sh. No Docker.

usage: cluster.py up   --bin DIR --home DIR [--netns NAME] [--image FILE.oci ...] [--kwok-nodes N]
       cluster.py restart NAME --home DIR      (kubelet, kube-apiserver, ...)
       cluster.py down --home DIR

`up` prints one JSON line: kubeconfig, netns, process ids, seconds. Run clients inside the namespace: `nsenter --net=/run/netns/NAME kubectl ...`.
With --kwok-nodes, N simulated nodes (label and taint `type=kwok`) start and finish any number of pods without containers, for
measurements at scale. Nothing outside the namespace is reachable from the cluster, and the cluster is reachable from nowhere else. Linux, root.
"""

import argparse
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOST, PODS, SERVICES, FIRST_SERVICE = "10.88.0.1", "10.88.0.0/16", "10.96.0.0/16", "10.96.0.1"
API_PORT, ETCD_PORT, ETCD_PEER_PORT = 6443, 2379, 2380
READY_TIMEOUT_S = 120

CONTAINERD = """version = 3
root = "{home}/containerd"
state = "{home}/containerd-state"
[grpc]
  address = "{home}/containerd.sock"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "localhost/pause:1"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "{home}/cni"
"""

CNI = {
    "cniVersion": "1.0.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "pods0",
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": PODS, "rangeStart": "10.88.1.1"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
    ],
}

COREFILE = """.:53 {{
  bind {host}
  errors
  kubernetes cluster.local {{
    kubeconfig {home}/admin.kubeconfig
  }}
}}
"""

KUBELET: dict[str, Any] = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "address": HOST,
    "healthzBindAddress": "127.0.0.1",
    "readOnlyPort": 0,
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}},
    "authorization": {"mode": "Webhook"},
    "cgroupDriver": "cgroupfs",
    "failSwapOn": False,
    "failCgroupV1": False,
    "enforceNodeAllocatable": [],
    "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    "imageMinimumGCAge": "24h",
    "imageGCHighThresholdPercent": 100,
    "nodeStatusUpdateFrequency": "4s",
    "syncFrequency": "10s",
    "clusterDNS": [HOST],
    "clusterDomain": "cluster.local",
    "maxPods": 250,
    "serializeImagePulls": False,
}


class Cluster:
    def __init__(self, *, bin_dir: Path, home: Path, netns: str) -> None:
        self.bin, self.home, self.netns = bin_dir.resolve(), home.resolve(), netns
        self.pids: dict[str, int] = {}
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.cgroup = f"assay-{netns}"

    def inside(self, *command: str) -> list[str]:
        return [
            "nsenter",
            f"--net=/run/netns/{self.netns}",
            *command,
        ]  # not `ip netns exec`: that hides /sys/fs/cgroup

    def hold(self) -> None:
        """One process owns a PID and a mount namespace: when it dies, every component, shim, container and mount dies with it."""
        holder = subprocess.Popen(
            self.inside("unshare", "--pid", "--fork", "--kill-child=KILL", "--mount", "--mount-proc", "--propagation", "private", "sh", "-c",
                        'mount -t tmpfs cni /run/netns && mkdir -p /var/lib/cni && mount -t tmpfs cni /var/lib/cni && exec "$0"', str(self.bin / "pause")),
            cwd=self.home, start_new_session=True, stdout=subprocess.DEVNULL, stderr=open(self.home / "holder.log", "ab"))  # fmt: skip
        self.holder = self._child(holder)
        while Path(f"/proc/{self.holder}/comm").read_text().strip() != "pause":
            if holder.poll() is not None:
                raise SystemExit(f"no namespaces: {(self.home / 'holder.log').read_text()}")
            time.sleep(0.02)
        self._remember("holder", holder.pid)

    @staticmethod
    def _child(parent: subprocess.Popen[bytes]) -> int:
        listing = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        while not (found := listing.read_text().split()):
            time.sleep(0.01)
        return int(found[0])

    def _remember(self, name: str, pid: int) -> None:
        self.pids[name] = pid
        (self.home / "pids.json").write_text(json.dumps(self.pids))

    def cgroups(self) -> list[Path]:
        root = Path("/sys/fs/cgroup")
        return (
            [root / self.cgroup]
            if (root / "cgroup.controllers").exists()
            else [c / self.cgroup for c in root.iterdir() if c.is_dir() and not c.is_symlink()]
        )

    def sh(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip()}")

    def start(self, name: str, *args: str) -> None:
        log = open(self.home / f"{name}.log", "ab")
        env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}
        command = [
            "nsenter",
            f"--target={self.holder}",
            "--net",
            "--mount",
            "--pid",
            f"--wd={self.home}",
            str(self.bin / name),
            *args,
        ]
        child = subprocess.Popen(
            command, stdout=log, stderr=log, env=env, cwd=self.home, start_new_session=True
        )
        self.children[name] = child
        (self.home / f"{name}.command").write_text(json.dumps(command))
        self._remember(name, self._child(child))

    def get(self, path: str, token: str, body: str | None = None) -> bytes:
        code = (
            "import ssl,sys,urllib.request as u;"
            "r=u.Request(sys.argv[1],data=sys.stdin.buffer.read() or None,"
            "headers={'Authorization':'Bearer '+sys.argv[2],'Content-Type':'application/json'});"
            "sys.stdout.buffer.write(u.urlopen(r,context=ssl._create_unverified_context(),timeout=5).read())"
        )
        command = self.inside(sys.executable, "-c", code, f"https://{HOST}:{API_PORT}{path}", token)
        return subprocess.run(command, check=True, capture_output=True, input=(body or "").encode()).stdout

    def post(self, path: str, document: dict[str, Any], token: str) -> None:
        self.get(path, token, json.dumps(document))

    def wait(self, what: str, probe: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            try:
                if probe():
                    return
            except (subprocess.CalledProcessError, ValueError, KeyError):
                pass
            self.alive(what)
            if time.monotonic() > deadline:
                raise SystemExit(
                    f"{what} was not ready within {READY_TIMEOUT_S} s: see the logs in {self.home}"
                )
            time.sleep(0.2)

    def alive(self, what: str) -> None:
        for name, child in self.children.items():
            if child.poll() is not None:
                raise SystemExit(
                    f"{name} ended with {child.returncode} while waiting for {what}: see {self.home}/{name}.log"
                )

    def proxy_mode(self) -> str:
        """kube-proxy dies, and every Service with it, where the kernel lacks the table kind it is told to use."""
        for mode, probe in (
            ("nftables", ["nft", "add", "table", "ip", "assay-probe"]),
            ("iptables", ["iptables-legacy", "-t", "nat", "-L", "-n"]),
        ):
            if (
                shutil.which(probe[0])
                and not subprocess.run(self.inside(*probe), capture_output=True).returncode
            ):
                return mode
        raise SystemExit(
            "neither nftables nor iptables-legacy works in this kernel: Services would not be reachable"
        )

    def kubeconfig(self, name: str, token: str) -> str:
        path = self.home / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        cluster = {
            "server": f"https://{HOST}:{API_PORT}",
            "certificate-authority": str(self.home / "certs/apiserver.crt"),
        }
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "local",
                    "clusters": [{"name": "local", "cluster": cluster}],
                    "users": [{"name": name, "user": {"token": token}}],
                    "contexts": [{"name": "local", "context": {"cluster": "local", "user": name}}],
                }
            )
        )
        return str(path)

    def network(self) -> None:
        if Path(f"/run/netns/{self.netns}").exists():
            raise SystemExit(
                f"network namespace {self.netns} exists: another cluster may be using it; run down, or give another --netns"
            )
        self.sh("ip", "netns", "add", self.netns)
        for command in (
            "ip link set lo up",
            "ip link add pods0 type bridge",
            f"ip addr add {HOST}/16 dev pods0",
            "ip link set pods0 up",
            f"ip route add {SERVICES} dev pods0",
            "sysctl -qw net.ipv4.ip_forward=1",
        ):
            self.sh(*self.inside(*command.split()))

    def control_plane(self) -> str:
        key, pub = self.home / "sa.key", self.home / "sa.pub"
        if not key.exists():
            self.sh("openssl", "genrsa", "-out", str(key), "2048")
            self.sh("openssl", "rsa", "-in", str(key), "-pubout", "-out", str(pub))
        ca, client = self.home / "kubelet-client-ca", self.home / "kubelet-client"
        if not client.with_suffix(".crt").exists():  # the API server's way to the kubelet: logs, exec
            self.sh("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=kubelet-client-ca",
                    "-keyout", f"{ca}.key", "-out", f"{ca}.crt")  # fmt: skip
            self.sh("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/O=system:masters/CN=kube-apiserver-kubelet-client",
                    "-keyout", f"{client}.key", "-out", f"{client}.csr")  # fmt: skip
            self.sh("openssl", "x509", "-req", "-in", f"{client}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key", "-CAcreateserial",
                    "-days", "3650", "-out", f"{client}.crt")  # fmt: skip
        users = {
            "admin": 'admin,"system:masters"',
            "system:kube-controller-manager": 'kcm,""',
            "system:kube-scheduler": 'scheduler,""',
            "system:kube-proxy": 'proxy,""',
        }
        tokens = {user: secrets.token_hex(16) for user in users}
        table = self.home / "tokens.csv"
        table.touch(mode=0o600)
        table.write_text("".join(f"{tokens[user]},{user},{rest}\n" for user, rest in users.items()))

        etcd = f"http://127.0.0.1:{ETCD_PORT}"
        peer = f"http://127.0.0.1:{ETCD_PEER_PORT}"
        self.start(
            "etcd", "--data-dir", str(self.home / "etcd"), "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
            "--unsafe-no-fsync", "--log-level", "warn",
        )  # fmt: skip
        self.start(
            "kube-apiserver", "--etcd-servers", etcd, "--bind-address", "0.0.0.0", "--advertise-address", HOST,
            "--secure-port", str(API_PORT), "--cert-dir", str(self.home / "certs"), "--service-cluster-ip-range", SERVICES,
            "--service-account-key-file", str(pub), "--service-account-signing-key-file", str(key),
            "--service-account-issuer", "https://kubernetes.default.svc", "--authorization-mode", "Node,RBAC",
            "--token-auth-file", str(table), "--anonymous-auth=false", "--allow-privileged=true",
            "--enable-admission-plugins", "NodeRestriction", "--kubelet-preferred-address-types", "InternalIP", "--profiling=false",
            "--kubelet-client-certificate", f"{client}.crt", "--kubelet-client-key", f"{client}.key",
        )  # fmt: skip
        admin = self.kubeconfig("admin", tokens["admin"])
        self.wait("kube-apiserver", lambda: self.get("/readyz", tokens["admin"]) == b"ok")
        self.start(
            "kube-controller-manager", "--kubeconfig", self.kubeconfig("controller-manager", tokens["system:kube-controller-manager"]),
            "--service-account-private-key-file", str(key), "--root-ca-file", str(self.home / "certs/apiserver.crt"),
            "--use-service-account-credentials", "--leader-elect=false", "--bind-address", "127.0.0.1",
            "--cert-dir", str(self.home / "controller-manager-certs"), "--kube-api-qps", "500", "--kube-api-burst", "1000",
            "--concurrent-job-syncs", "20",
        )  # fmt: skip
        self.start(
            "kube-scheduler", "--kubeconfig", self.kubeconfig("scheduler", tokens["system:kube-scheduler"]), "--leader-elect=false",
            "--bind-address", "127.0.0.1", "--cert-dir", str(self.home / "scheduler-certs"), "--kube-api-qps", "500", "--kube-api-burst", "1000",
        )  # fmt: skip
        self.start(
            "kube-proxy", "--kubeconfig", self.kubeconfig("proxy", tokens["system:kube-proxy"]), "--proxy-mode", self.proxy_mode(),
            "--cluster-cidr", PODS, "--masquerade-all", "--hostname-override", "node-1", "--bind-address", "127.0.0.1",
            "--conntrack-max-per-core", "0", "--conntrack-min", "0",
        )  # fmt: skip
        (self.home / "Corefile").write_text(COREFILE.format(host=HOST, home=self.home))
        self.start("coredns", "-conf", str(self.home / "Corefile"))
        self.token = tokens["admin"]
        return admin

    def node(self, kubeconfig: str, images: list[Path]) -> None:
        (self.home / "cni").mkdir(exist_ok=True)
        (self.home / "cni/10-pods.conflist").write_text(json.dumps(CNI))
        (self.home / "containerd.toml").write_text(CONTAINERD.format(home=self.home))
        socket = self.home / "containerd.sock"
        x509 = {"clientCAFile": str(self.home / "kubelet-client-ca.crt")}
        config = {
            **KUBELET,
            "authentication": {**KUBELET["authentication"], "x509": x509},
            "containerRuntimeEndpoint": f"unix://{socket}",
            "volumePluginDir": str(self.home / "plugins"),
            "cgroupRoot": f"/{self.cgroup}",
            "podLogsDir": str(self.home / "pod-logs"),
        }
        (self.home / "kubelet.yaml").write_text(json.dumps(config))
        self.start("containerd", "-c", str(self.home / "containerd.toml"))
        ctr = [str(self.bin / "ctr"), "-a", str(socket), "-n", "k8s.io"]
        self.wait("containerd", lambda: not subprocess.run([*ctr, "version"], capture_output=True).returncode)
        for image in images:
            self.sh(*ctr, "images", "import", str(image))
        self.start(
            "kubelet", "--config", str(self.home / "kubelet.yaml"), "--kubeconfig", kubeconfig, "--hostname-override", "node-1",
            "--node-ip", HOST, "--root-dir", str(self.home / "kubelet"), "--cert-dir", str(self.home / "kubelet-certs"),
        )  # fmt: skip

    def simulated_nodes(self, kubeconfig: str, count: int) -> None:
        self.start(
            "kwok", "--kubeconfig", kubeconfig, "--manage-nodes-with-label-selector", "type=kwok", "--node-ip", HOST,
            "--cidr", "10.99.0.0/16", "--config", str(self.bin.parent / "kwok-stages.yaml"),
        )  # fmt: skip
        room = {"cpu": "1k", "memory": "1Ti", "pods": "10k"}
        for number in range(count):
            node = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"kwok-{number}", "labels": {"type": "kwok"}},
                "spec": {"taints": [{"key": "type", "value": "kwok", "effect": "NoSchedule"}]},
                "status": {"capacity": room, "allocatable": room},
            }
            self.post("/api/v1/nodes", node, self.token)

    def ready(self) -> bool:
        node = json.loads(self.get("/api/v1/nodes/node-1", self.token))
        self.get("/api/v1/namespaces/default/serviceaccounts/default", self.token)
        return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])


def up(options: argparse.Namespace) -> None:
    started = time.monotonic()
    if (options.home / "pids.json").exists():
        raise SystemExit(f"{options.home} holds a cluster: run `cluster.py down --home {options.home}` first")
    options.home.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(bin_dir=options.bin, home=options.home, netns=options.netns)
    cluster.network()
    (options.home / "netns").write_text(options.netns)
    try:
        _start(cluster, options, started)
    except BaseException:
        for log in options.home.glob("*.log"):
            shutil.copy(log, Path(tempfile.gettempdir()) / f"assay-{options.netns}-{log.name}")
        down(options)
        raise


def _start(cluster: Cluster, options: argparse.Namespace, started: float) -> None:
    for group in cluster.cgroups():
        group.mkdir(exist_ok=True)
        for knob in ("cpuset.cpus", "cpuset.mems"):  # cgroup v1: a new cpuset is empty
            if (group / knob).exists() and group.parent.name.startswith("cpuset"):
                (group / knob).write_text((group.parent / knob).read_text())
    cluster.hold()
    admin = cluster.control_plane()
    cluster.node(admin, [options.bin.parent / "pause.oci", *options.image])
    cluster.wait("the node", cluster.ready)
    if options.kwok_nodes:
        cluster.simulated_nodes(admin, options.kwok_nodes)
    time.sleep(0.5)
    cluster.alive("the end of start-up")
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({"kubeconfig": admin, "netns": options.netns, "pids": cluster.pids, "seconds": seconds}))


def restart(options: argparse.Namespace) -> None:
    """Kill one component and start it again as it was: after `kubectl delete node` the kubelet registers only on a fresh start."""
    home = options.home.resolve()
    pids, command = (
        json.loads((home / "pids.json").read_text()),
        json.loads((home / f"{options.name}.command").read_text()),
    )
    if _cwd(pids[options.name]) == str(home):
        os.kill(pids[options.name], signal.SIGKILL)
        while _cwd(pids[options.name]):
            time.sleep(0.02)  # its port must be free
    log = open(home / f"{options.name}.log", "ab")
    env = {
        **os.environ,
        "PATH": f"{Path(command[command.index(f'--wd={home}') + 1]).parent}:{os.environ['PATH']}",
    }
    child = subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=home, start_new_session=True)
    pids[options.name] = Cluster._child(child)
    (home / "pids.json").write_text(json.dumps(pids))
    print(json.dumps(pids))


def down(options: argparse.Namespace) -> None:
    home = options.home.resolve()
    if not home.exists():
        return
    netns = (home / "netns").read_text() if (home / "netns").exists() else ""
    pids = json.loads((home / "pids.json").read_text()) if (home / "pids.json").exists() else {}
    holder = pids.get("holder", 0)
    if holder and _cwd(holder) == str(home):  # a reused pid is somebody else's
        os.kill(holder, signal.SIGKILL)
        for _ in range(100):
            if not any(_cwd(pid) == str(home) for pid in pids.values()):
                break
            time.sleep(0.1)
    cluster = Cluster(bin_dir=home, home=home, netns=netns)
    for group in cluster.cgroups():
        for path in (
            sorted(group.rglob("*"), key=lambda p: len(p.parts), reverse=True) if group.exists() else []
        ):
            if path.is_dir():
                _rmdir(path)
        _rmdir(group)
    if netns:
        subprocess.run(["ip", "netns", "del", netns], capture_output=True)
    shutil.rmtree(home, ignore_errors=True)
    if home.exists():
        raise SystemExit(f"{home} could not be removed")


def _cwd(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def _rmdir(path: Path) -> None:
    for _ in range(20):
        try:
            path.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True)
    start = verbs.add_parser("up")
    start.add_argument("--bin", type=Path, required=True)
    start.add_argument("--home", type=Path, required=True)
    start.add_argument("--netns", default="assay")
    start.add_argument("--image", type=Path, action="append", default=[])
    start.add_argument("--kwok-nodes", type=int, default=0)
    start.set_defaults(run=up)
    again = verbs.add_parser("restart")
    again.add_argument("--home", type=Path, required=True)
    again.add_argument("name")
    again.set_defaults(run=restart)
    stop = verbs.add_parser("down")
    stop.add_argument("--home", type=Path, required=True)
    stop.set_defaults(run=down)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
