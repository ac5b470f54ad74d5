"""The client libraries and tools that people use, against the guard and against Redis itself: both
must do the same for them, whether the guard's cache is one server or a cluster."""
import pathlib
import shutil
import subprocess

import pytest
import redis

import servers
from servers import PATIENCE, free_port

SCRIPTS = pathlib.Path(__file__).parent / "clients"


@pytest.fixture(scope="module")
def node_modules():
    """Where npm has put what package.json names; kept in the build tree."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    place = pathlib.Path(servers.NESTGUARD).parent / "clients"
    wanted = (SCRIPTS / "package.json").read_text()
    place.mkdir(exist_ok=True)
    done = place / "installed.json"
    if not done.exists() or done.read_text() != wanted:
        (place / "package.json").write_text(wanted)
        made = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"],
                              cwd=place, capture_output=True, text=True, timeout=300, check=False)
        if made.returncode != 0:
            pytest.skip("npm cannot install the client libraries: " + made.stderr[-300:])
        done.write_text(wanted)
    return place / "node_modules"


@pytest.fixture
def behind_cluster(start_guard, items, cluster):
    for node in cluster.primaries:
        node.client().flushall()
    return start_guard(items(), cache=cluster.url)


@pytest.fixture(params=["one server", "cluster"])
def where(request):
    return request.param


@pytest.fixture
def guard(request, start_guard, items, where):
    if where == "cluster":
        return request.getfixturevalue("behind_cluster")
    return start_guard(items())


@pytest.fixture
def extent(where):
    """Of what a program does: a cluster has no other databases, and of an unknown command's words
    nobody knows which are keys."""
    return ["cluster"] if where == "cluster" else []


@pytest.fixture
def twin():
    """A Redis like the one behind the guard, to be used directly."""
    server = servers.Redis().start()
    yield server
    server.stop()
    server.remove()


def run(script, modules, port, *arguments):
    done = subprocess.run(["node", SCRIPTS / script, str(port), *arguments], capture_output=True,
                          text=True, timeout=2 * PATIENCE, check=False,
                          env={"NODE_MODULES": str(modules), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("script, arguments", [
    ("node_redis.mjs", ["2"]), ("node_redis.mjs", ["3"]), ("ioredis.mjs", [])])
def test_node_clients(guard, twin, node_modules, script, arguments, extent):
    ours, theirs = (run(script, node_modules, server.port, *arguments, *extent)
                    for server in (guard, twin))
    assert ours == theirs
    assert len(ours) > 15


def test_hiredis(guard, twin, extent):
    program = pathlib.Path(servers.NESTGUARD).parent / "tests" / "hiredis_client"
    ours, theirs = (
        subprocess.run([program, str(server.port), *extent], capture_output=True, timeout=PATIENCE,
                       check=False) for server in (guard, twin))
    assert ours.stdout == theirs.stdout
    assert ours.returncode == theirs.returncode == 0, ours.stderr
    assert len(ours.stdout.splitlines()) > 500


def redis_cli(server, *arguments, words="", timeout=PATIENCE):
    done = subprocess.run(["redis-cli", "-p", str(server.port), *arguments], input=words.encode(),
                          capture_output=True, timeout=timeout, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("arguments, words", [
    (["PING"], ""),
    (["-3", "HGETALL", "item:901"], ""),
    (["--raw", "GET", "item:901"], ""),
    (["--csv", "MGET", "a", "item:901", "b"], ""),
    (["--json", "HGETALL", "hash"], ""),
    (["-r", "3", "-i", "0.01", "INCR", "counter"], ""),
    (["-x", "SET", "from-input"], "many\nlines\n"),
    (["--no-auth-warning", "-a", "wrong", "PING"], ""),
    ([], "SET a 1\nGET a\nGET item:901\nMULTI\nINCR a{item:901}\nGET item:901\nEXEC\n"
         "GET\nHELP @string\nOBJECT HELP\n"),
    (["--pipe"], "SET p1 1\r\nSET p2 2\r\nLPUSH p1 x\r\nGET item:901\r\n"),
    (["--scan", "--pattern", "only*"], ""),
])
def test_redis_cli(guard, twin, arguments, words):
    for client in (guard.redis(), twin.client()):
        client.hset("hash", "a", "1")
        client.set("only one", "x" * 100)
    ours, theirs = redis_cli(guard, *arguments, words=words), redis_cli(
        twin, *arguments, words=words)
    assert ours == theirs


@pytest.mark.parametrize("arguments, words", [
    (["-n", "5", "SET", "elsewhere", "x"], ""),
    ([], "SELECT 3\nSET three 3\nSELECT 0\nGET three\nNOSUCH\n"),
])
def test_redis_cli_uses_what_one_server_has(start_guard, items, twin, arguments, words):
    ours, theirs = (redis_cli(server, *arguments, words=words)
                    for server in (start_guard(items()), twin))
    assert ours == theirs


def test_redis_cli_goes_through_all_keys(guard, twin):
    """Of whatever node they are, and says of each what it is, and which are the biggest."""
    for client in (guard.redis(), twin.client()):
        pipe = client.pipeline(transaction=False)
        for number in range(1000):
            pipe.set(f"text:{number}", "x" * (1 + number))
            pipe.rpush(f"list:{number}", *range(1 + number % 7))
        pipe.rpush("list:longest", *range(100))
        pipe.execute()
    ours, theirs = (redis_cli(server, "--scan") for server in (guard, twin))
    assert sorted(ours[1].splitlines()) == sorted(theirs[1].splitlines())
    assert len(ours[1].splitlines()) == 2001
    ours, theirs = (summary(redis_cli(server, "--bigkeys")[1]) for server in (guard, twin))
    assert ours == theirs and len(ours) > 10, ours
    assert b"Sampled 2001 keys in the keyspace!" in redis_cli(guard, "--memkeys")[1]


def summary(said):
    """Without what takes shape as the keys come in."""
    return [line for line in said.decode().partition("summary")[2].splitlines() if line.strip()]


def test_redis_cli_fetches_what_a_replica_gets(start_guard, items, twin, tmp_path):
    """How it is sent, and how long it is, depends on what else the server is doing."""
    def fetch(server):
        file = tmp_path / f"{server.port}.rdb"
        code, out, errors = redis_cli(server, "--functions-rdb", str(file))
        assert code == 0, (out, errors)
        return file.read_bytes()[:5]

    assert fetch(start_guard(items())) == fetch(twin) == b"REDIS"


def test_redis_cli_evaluates_scripts(guard, twin, tmp_path):
    script = tmp_path / "script.lua"
    script.write_text("return {KEYS[1], ARGV[1], redis.call('GET', KEYS[1])}")
    arguments = ["--eval", str(script), "item:901", ",", "word"]
    assert redis_cli(guard, *arguments) == redis_cli(twin, *arguments)


def test_redis_cli_measures(guard):
    for mode in (["--latency", "--raw"], ["--stat", "-i", "0.01"], ["--memkeys", "-i", "0"], ["--bigkeys"],
                 ["--intrinsic-latency", "1"]):
        with subprocess.Popen(["redis-cli", "-p", str(guard.port), *mode], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as tool:
            try:
                text = tool.communicate(timeout=2)[0]
            except subprocess.TimeoutExpired:  # some of them go on until they are told to end
                tool.terminate()
                text = tool.communicate()[0]
        assert b"rror" not in text, (mode, text)


def test_redis_benchmark_runs_whole(guard):
    """Its default run: PING in both forms, SET, GET, INCR, lists, sets, hashes, sorted sets, MSET."""
    for extra in ([], ["-P", "16", "-r", "1000"], ["-3", "-P", "4"]):
        done = subprocess.run(
            ["redis-benchmark", "-p", str(guard.port), "-n", "2000", "-c", "20", "-q", *extra],
            capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        assert "rror" not in said and "WARNING" not in said, said
        assert said.count("requests per second") >= 19, said


INSIDE = "in{item:901}"  # of a transaction: in a cluster its keys have one slot


def through_redis_py(client, other):
    """What an application does with redis-py; a list of what it got."""
    got = [client.get("item:901"), client.mget("item:901", "none"), client.hgetall("item:901"),
           client.set("text", "x", px=100000, nx=True), client.get("text")]
    with client.pipeline() as pipe:
        got.append(pipe.set(INSIDE, 1).get("item:901").incr(INSIDE).execute())
        pipe.watch(INSIDE)
        other.set(INSIDE, 10)
        pipe.multi()
        pipe.incr(INSIDE)
        try:
            got.append(pipe.execute())
        except redis.WatchError as error:
            got.append(str(error))
    with client.pipeline(transaction=False) as pipe:
        for number in range(100):
            pipe.get("text" if number % 2 else f"item:{900 + number}")
        got.append(pipe.execute())
    with client.lock("lock", timeout=10) as lock:
        got.append(lock.owned())
        got.append(other.lock("lock").acquire(blocking=False))
    with client.pubsub() as listener:
        listener.subscribe("news")
        listener.psubscribe("w*")
        for _ in range(2):
            got.append(listener.get_message(timeout=PATIENCE))
        other.publish("weather", "rain")
        got.append(listener.get_message(timeout=PATIENCE))
    got.append(client.blpop("queue", timeout=0.05))
    client.rpush("queue", "job")
    got.append(client.blpop("queue", timeout=5))
    script = client.register_script("return redis.call('GET', KEYS[1])")
    got += [script(keys=["text"]), script(keys=["item:901"])]
    got.append(client.xadd("stream", {"a": 1}, id="1-1"))
    got.append(client.xread({"stream": "0"}, block=10))
    got.append(sorted(client.scan_iter(match="*e*", count=2)))
    return got


def test_redis_py(guard, twin):
    ours = through_redis_py(guard.redis(), guard.redis())
    assert ours == through_redis_py(twin.client(), twin.client())
