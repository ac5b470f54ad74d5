"""The Debian packages on a clean Debian, as a person uses them: installed, started, upgraded, removed, purged.

Needs root, mmdebstrap and the network; `.ci/run` runs it. The root shares this machine's network, so the servers
are outside. There is no systemd to boot in it: what the unit says is done by hand. With NESTGUARD_KEEP_PACKAGES=yes
it takes the packages that were made last.
"""
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading

import pytest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests/e2e"))

os.environ.setdefault("NESTGUARD", "/usr/bin/nestguard")
import servers  # noqa: E402
from servers import PATIENCE, free_port  # noqa: E402
from waiting import wait_until  # noqa: E402

RELEASE = re.search(r"VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text()).group(1)
ROOT = TREE / "build" / RELEASE


def run(*words, **options):
    done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout}"
    return done.stdout


def inside(*words):
    """Runs it in the root, where the tree is /checkout."""
    return run(TREE / ".ci/root", RELEASE, *words)


def apt(*words):
    return inside("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y",
                  "--no-install-recommends", *words)


@pytest.fixture(scope="module")
def packages():
    made = (run(TREE / "deploy/package").split() if not os.environ.get("NESTGUARD_KEEP_PACKAGES") else
            sorted(map(str, (TREE / "build/package").glob("nestguard*_0*.deb"))))
    return [pathlib.Path(path) for path in made if "dbgsym" not in path]


@pytest.fixture(scope="module")
def root():
    shutil.rmtree(ROOT, ignore_errors=True)
    inside("apt-get", "-q", "update")
    yield ROOT
    shutil.rmtree(ROOT, ignore_errors=True)


@pytest.fixture(scope="module")
def backends():
    database, cache = servers.Postgres().start(), servers.Redis().start()
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text NOT NULL)")
    database.execute("INSERT INTO items VALUES (1, 'one')")
    database.execute("GRANT SELECT, DELETE ON items TO guard")
    database.execute("CREATE PUBLICATION nestguard FOR TABLE items"
                     " WITH (publish_via_partition_root = true)")
    yield database, cache
    database.remove()
    cache.remove()


def names_in(packages):
    return [f"/checkout/{package.relative_to(TREE)}" for package in packages]


def newer(packages):
    """The same under a higher version."""
    made = []
    for package in packages:
        opened, name = package.with_suffix(""), re.sub(r"_[^_]+_", "_9.0_", package.name)
        run("dpkg-deb", "-R", package, opened)
        control = opened / "DEBIAN/control"
        control.write_text(re.sub(r"^Version: .*$", "Version: 9.0", control.read_text(), flags=re.M))
        run("dpkg-deb", "--root-owner-group", "-b", opened, package.parent / name)
        shutil.rmtree(opened)
        made.append(package.parent / name)
    return made


class Service:
    """What systemd makes of the unit's lines, as far as the guard can tell."""

    def __init__(self, root, path):
        text = (root / "lib/systemd/system/nestguard.service").read_text()
        self.settings = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        self.root, self.path = root, path
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(str(root / "run/notify"))
        os.chmod(root / "run/notify", 0o777)
        self.manager.settimeout(PATIENCE)

    def __enter__(self):
        assert self.settings["Type"] == "notify"
        variables = dict(line.split("=", 1) for line in
                         (self.root / "etc/nestguard/environment").read_text().splitlines()
                         if line and not line.startswith("#"))
        user = self.settings["User"]
        words = [TREE / ".ci/root", RELEASE, "setpriv", f"--reuid={user}", f"--regid={user}",
                 "--clear-groups", "--no-new-privs", "--bounding-set=-all", "env",
                 "NOTIFY_SOCKET=/run/notify", *(f"{name}={text}" for name, text in variables.items()),
                 *shlex.split(self.settings["ExecStart"])]
        with open(self.path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(list(map(str, words)), stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        try:
            assert b"READY=1" in self.manager.recv(4096)
        except TimeoutError:
            self.process.kill()
            raise AssertionError(self.path.read_text()) from None
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.path.read_text()
        self.manager.close()
        (self.root / "run/notify").unlink()


def guards_of(root):
    """Who serves in it, by number."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.path.realpath(process / "root") == str(root) and \
                    (process / "comm").read_text() == "nestguard\n":
                found.append(int(process.name))
        except OSError:
            pass
    return found


class Asker(threading.Thread):
    """Connects, asks for a row and for none, and goes, again and again until stopped."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.asked, self.wrong, self.ends = port, 0, [], threading.Event()
        self.start()

    def run(self):
        while not self.ends.is_set():
            try:
                with servers.redis.Redis(port=self.port) as client:
                    if (said := client.mget("item:1", "item:2")) != [b"one", None]:
                        self.wrong.append(said)
            except servers.redis.RedisError as error:
                self.wrong.append(error)
            self.asked += 1

    def stop(self):
        self.ends.set()
        self.join()
        assert self.asked and not self.wrong, self.wrong[:5]


def upgrade_under_load(root, port, packages):
    """Nobody is refused, and who serves afterwards is another process, of the new program."""
    before, asker = guards_of(root), Asker(port)
    apt("install", *names_in(packages))
    wait_until(lambda: (now := guards_of(root)) and not set(now) & set(before), PATIENCE,
               "the successor")
    asker.stop()
    after = guards_of(root)
    assert len(before) == len(after) == 1
    assert os.readlink(f"/proc/{after[0]}/exe").endswith("/usr/bin/nestguard"), "not the deleted one"
    return after[0]


def test_lintian_finds_nothing(packages):
    assert run("lintian", "--allow-root", "--fail-on", "error,warning,info,pedantic", *packages) == ""


def test_installed_started_upgraded_and_removed(packages, root, backends, tmp_path):
    database, cache = backends
    etc, programs = root / "etc/nestguard", root / "usr/bin"

    apt("install", *names_in(packages))
    assert re.match(r"nestguard:x:\d+:\d+:nestguard:/:/usr/sbin/nologin",
                    inside("getent", "passwd", "nestguard"))
    assert inside("stat", "-c", "%U:%G %a", "/etc/nestguard").strip() == "root:nestguard 750"
    assert inside("nestguard", "--version").startswith("nestguard ")
    libraries = {name: inside("ldd", f"/usr/bin/{name}") for name in ("nestguard", "nestguard-ctl")}
    assert "libcurl" not in libraries["nestguard"] and "libcurl" in libraries["nestguard-ctl"]
    inside("systemd-analyze", "verify", "--man=no", "/lib/systemd/system/nestguard.service")
    assert "nestguard.service" in inside("ls", "/etc/systemd/system/multi-user.target.wants")

    port, control = free_port(), free_port()
    (etc / "nestguard.yaml").write_text(
        (root / "usr/share/doc/nestguard/examples/nestguard.yaml").read_text()
        .replace("listen: 127.0.0.1:6380", f"listen: 127.0.0.1:{port}")
        .replace("control: 127.0.0.1:6390", f"control: 127.0.0.1:{control}")
        .replace("cache: redis://127.0.0.1:6379/0", f"cache: {cache.url}")
        .replace("#control_token:", "control_token:")
        .split("database: ")[0] + f"database: postgresql://guard@127.0.0.1:{database.port}/postgres\n"
        "keyspaces: [{name: items, key: 'item:{id}', table: items, value: payload}]\n")
    with open(etc / "environment", "a", encoding="utf-8") as environment:
        environment.write("NESTGUARD_TOKEN=sesame\n")

    def ctl(word):
        return inside("nestguard", "ctl", "--control", f"127.0.0.1:{control}", "--token", "sesame", word)

    def guards():
        try:
            return '"guarding": true' in ctl("guarding")
        except AssertionError:
            return False

    def serves():
        with Service(root, tmp_path / "log"):
            ctl("ready")
            wait_until(guards, PATIENCE, "guarding")
            client = servers.redis.Redis(port=port)
            assert client.get("item:1") == b"one" and client.get("item:2") is None

    before = (etc / "nestguard.yaml").read_text()
    with Service(root, tmp_path / "log"):
        wait_until(guards, PATIENCE, "guarding")
        successor = upgrade_under_load(root, port, newer(packages))
    os.kill(successor, signal.SIGTERM)
    wait_until(lambda: not guards_of(root), PATIENCE, "the successor's end")
    assert "9.0" in inside("dpkg-query", "-W", "nestguard")
    assert (etc / "nestguard.yaml").read_text() == before
    assert "sesame" in (etc / "environment").read_text(), "a changed conffile stays"
    serves()

    apt("remove", "nestguard", "nestguard-ctl")
    assert not (programs / "nestguard").exists() and not (programs / "nestguard-ctl").exists()
    assert (etc / "nestguard.yaml").exists() and (etc / "environment").exists()
    apt("purge", "nestguard", "nestguard-ctl")
    assert [path.name for path in etc.iterdir()] == ["nestguard.yaml"], "what an admin wrote stays"
    elsewhere = " -o ".join(f"-path '{path}' -prune" for path in
                            ("/checkout", "/proc", "/dev", "/etc/nestguard*", "/var/log", "/var/cache"))
    left = inside("sh", "-c", f"find / {elsewhere} -o -name '*nestguard*' -print").split()
    assert left == []
