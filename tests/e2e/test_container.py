"""The container and the Kubernetes manifests, as far as a machine without either can tell."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

import servers
from built import SANITIZED
from certificates import Certificates
from servers import NESTGUARD, PATIENCE, ROOT, run_nestguard

yaml = pytest.importorskip("yaml")
from waiting import wait_until  # noqa: E402

DEPLOY = pathlib.Path(ROOT, "deploy")
BUILD = pathlib.Path(NESTGUARD).parent


@pytest.fixture(scope="module")
def manifests():
    """{kind: manifest}; there is one of each."""
    found = [manifest for file in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
             for manifest in yaml.safe_load_all(file.read_text())]
    kinds = {manifest["kind"]: manifest for manifest in found}
    assert len(kinds) == len(found)
    return kinds


def container_of(manifests):
    [container] = manifests["Deployment"]["spec"]["template"]["spec"]["containers"]
    return container


def lost(told, known, at=""):
    """What of a manifest Kubernetes' own model of it does not have, as paths."""
    if isinstance(told, dict):
        for name, value in told.items():
            yield from lost(value, known[name], f"{at}/{name}") if name in known else [f"{at}/{name}"]
    elif isinstance(told, list):
        for number, (value, other) in enumerate(zip(told, known, strict=True)):
            yield from lost(value, other, f"{at}/{number}")
    elif told != known:
        yield at


class Answer:
    """What the client library takes for one of an API server."""

    def __init__(self, manifest):
        self.data = json.dumps(manifest)


class TestKubernetes:
    def test_each_field_is_one_of_kubernetes(self, manifests):
        """Through the types of its client, which refuse where something is missing. An operator's are
        not among them; and Debian 12 has those of a Kubernetes that could not sleep in a hook yet."""
        client = pytest.importorskip("kubernetes.client")
        api, seen = client.ApiClient(), set()
        for kind, manifest in manifests.items():
            version = manifest["apiVersion"].rpartition("/")[2]
            model = version.capitalize() + kind
            if hasattr(client, model):
                seen.add(kind)
                known = api.sanitize_for_serialization(api.deserialize(Answer(manifest), model))
                missing = {path.rpartition("/")[2] for path in lost(manifest, known)}
                assert missing <= (set() if hasattr(client, "V1SleepAction") else {"sleep"}), kind
        assert seen == set(manifests) - {"ServiceMonitor"}

    def test_selectors_find_the_pods_and_the_service(self, manifests):
        labels = manifests["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
        for selector in (manifests["Deployment"]["spec"]["selector"]["matchLabels"],
                         manifests["Service"]["spec"]["selector"],
                         manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]):
            assert selector and selector.items() <= labels
        assert (manifests["ServiceMonitor"]["spec"]["selector"]["matchLabels"].items()
                <= manifests["Service"]["metadata"]["labels"].items())

    def test_ports_have_the_names_that_are_asked_for(self, manifests):
        ports = {port["name"]: port["containerPort"] for port in container_of(manifests)["ports"]}
        services = {port["name"]: port["targetPort"] for port in manifests["Service"]["spec"]["ports"]}
        assert set(services.values()) <= set(ports)
        [endpoint] = manifests["ServiceMonitor"]["spec"]["endpoints"]
        assert endpoint["port"] in services
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container_of(manifests)[probe]["httpGet"]["port"] in ports
        settings = yaml.safe_load(manifests["ConfigMap"]["data"]["nestguard.yaml"])
        assert settings["listen"].endswith(f":{ports['redis']}")
        assert settings["control"].endswith(f":{ports['control']}")

    def test_load_balancers_ask_whether_clients_are_served(self, manifests):
        container = container_of(manifests)
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"

    def test_secrets_and_volumes_are_there(self, manifests):
        keys = manifests["Secret"]["stringData"]
        [endpoint] = manifests["ServiceMonitor"]["spec"]["endpoints"]
        wanted = [endpoint["authorization"]["credentials"]]
        wanted += [entry["valueFrom"]["secretKeyRef"] for entry in container_of(manifests)["env"]
                   if "secretKeyRef" in entry["valueFrom"]]
        for reference in wanted:
            assert reference["name"] == manifests["Secret"]["metadata"]["name"]
            assert reference["key"] in keys
        volumes = {volume["name"]: volume
                   for volume in manifests["Deployment"]["spec"]["template"]["spec"]["volumes"]}
        assert {mount["name"] for mount in container_of(manifests)["volumeMounts"]} == set(volumes)
        assert volumes["configuration"]["configMap"]["name"] == manifests["ConfigMap"]["metadata"]["name"]

    def test_the_file_has_no_mistake(self, manifests, tmp_path):
        """Of the file nothing is complained; the servers that it names are not here."""
        file = tmp_path / "nestguard.yaml"
        file.write_text(manifests["ConfigMap"]["data"]["nestguard.yaml"].replace(
            "@postgresql:5432", "@127.0.0.1:1").replace("redis:6379", "127.0.0.1:1"))
        environment = {entry["name"]: "word" for entry in container_of(manifests)["env"]}
        assert set(re.findall(r"\$\{(\w+)\}", file.read_text())) == set(environment)
        said = run_nestguard("check", "-c", file, **environment)[1]
        complaints = [line for line in said.splitlines() if re.search(r"\b(error|warning)\b", line)]
        assert complaints and all("127.0.0.1:1" in line or "port 1" in line
                                  for line in complaints), said

    def test_nothing_runs_as_root_or_writes_to_its_root(self, manifests):
        pod = manifests["Deployment"]["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        security = container_of(manifests)["securityContext"]
        assert security["readOnlyRootFilesystem"] is True and security["capabilities"]["drop"] == ["ALL"]
        assert security["allowPrivilegeEscalation"] is False
        user = pod["securityContext"]["runAsUser"]
        assert re.search(rf"^USER {user}:", (DEPLOY / "Containerfile").read_text(), re.M)
        assert container_of(manifests)["image"].split(":")[1] == run_nestguard("--version")[1].split()[1]


class Contained(servers.Nestguard):
    """A guard in the container's root, which it cannot write to, as the container's user."""
    root = None

    def command(self):
        return ["unshare", "--mount", "sh", "-ec", """
            mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"
            mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/tmp"
            exec setpriv --pdeathsig KILL chroot --userspec=65532:65532 "$1" /usr/bin/nestguard \
                serve -c /etc/nestguard/nestguard.yaml""", "-", str(self.root)]


class First(servers.Nestguard):
    """Process 1 of processes of its own."""

    def command(self):
        return ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *super().command()]


@pytest.mark.skipif(subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], check=False).returncode != 0,
                    reason="process 1 needs rights that are not here")
def test_the_first_process_of_a_container_has_no_successor(database, cache, items):
    """With it, all others end."""
    guard = First({"cache": cache.url, "database": database.url, "keyspaces": [items()]}).start()
    try:
        [first] = guard.children()
        os.kill(first, signal.SIGUSR2)
        wait_until(lambda: "process 1 of a container" in guard.log(), PATIENCE, guard.log)
        assert guard.redis().get("item:1") == b"payload 1"
        os.kill(first, signal.SIGTERM)
        guard.process.wait(PATIENCE)
    finally:
        guard.remove()


class TlsRedis(servers.Redis):
    def __init__(self, certificate, key):
        super().__init__()
        self.words = ["--tls-port", str(self.port), "--tls-cert-file", certificate, "--tls-key-file", key,
                      "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no"]

    def command(self):
        words = super().command()
        words[words.index("--port") + 1] = "0"
        return words + self.words

    def client(self, **options):
        return super().client(ssl=True, ssl_cert_reqs=None, **options)


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
class TestContainer:
    @pytest.fixture(scope="class")
    def root(self, tmp_path_factory):
        root = tmp_path_factory.mktemp("image")
        subprocess.run([DEPLOY / "container-root", BUILD, root], check=True)
        for path in (root, *root.parents):
            if path.owner() == "root" and path.stat().st_mode & 0o777 == 0o700:
                path.chmod(0o711)
        return root

    def test_it_holds_no_shell(self, root):
        assert sorted(path.name for path in (root / "usr/bin").iterdir()) == ["nestguard", "nestguard-ctl"]
        assert not (root / "bin").exists()

    @pytest.mark.skipif(SANITIZED, reason="without /proc a sanitizer ends the process, and reads no options")
    def test_it_trusts_the_authorities_that_it_holds(self, root, tmp_path):
        certificates = Certificates(tmp_path)
        trusted = root / "etc/ssl/certs/ca-certificates.crt"
        before = trusted.read_bytes()
        (root / "tmp/keys").write_text("item:1\n")
        server = TlsRedis(*certificates.make("redis")).start()
        try:
            (root / "tmp/nestguard.yaml").write_text(json.dumps({
                "cache": f"rediss://127.0.0.1:{server.port}", "listen": "127.0.0.1:1", "keyspaces": [
                    {"name": "items", "key": "item:{id}", "source": "file:/tmp/keys", "on_miss": "pass"}]}))
            alone = {"PATH": os.environ["PATH"]}  # where OpenSSL looks is a variable's to say, too
            check = ["chroot", "--userspec=65532:65532", root, "/usr/bin/nestguard", "check", "-c",
                     "/tmp/nestguard.yaml"]
            said = subprocess.run(check, check=False, capture_output=True, text=True, env=alone)
            assert "trusts nobody" in said.stdout + said.stderr
            trusted.write_bytes(before + pathlib.Path(certificates.file("ca.crt")).read_bytes())
            said = subprocess.run(check, check=False, capture_output=True, text=True, env=alone)
            assert "0 errors" in said.stdout + said.stderr, said
        finally:
            trusted.write_bytes(before)
            server.stop()
            server.remove()

    @pytest.mark.skipif(subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0,
                        reason="mounts of its own need a root that is one, which a chroot's is not")
    def test_it_serves_and_is_probed(self, root, database, cache, items):
        guard = Contained({"cache": cache.url, "database": database.url, "keyspaces": [items()]})
        Contained.root = root
        shutil.copy(guard.file, root / "etc/nestguard/nestguard.yaml")
        try:
            guard.start()
            assert guard.redis().mget("item:1", "item:1000") == [b"payload 1", None]
            containerfile = (DEPLOY / "Containerfile").read_text()
            probe = yaml.safe_load(re.search(r"HEALTHCHECK CMD (.*)", containerfile).group(1))
            subprocess.run(["nsenter", f"--target={guard.process.pid}", "--mount", "chroot",
                            "--userspec=65532:65532", root, *probe], check=True, stdout=sys.stderr)
            wait_until(guard.is_serving, PATIENCE, "readiness")
            guard.finish()
        finally:
            guard.remove()
