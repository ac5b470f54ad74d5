"""A Redis Cluster whose nodes speak TLS alone, and want a certificate and a password."""
import pytest

from clusters import Cluster, Node
from following import follow  # a fixture
from servers import PATIENCE
from test_tls import certificates  # a fixture
from waiting import wait_until

SECRET = "hunter2"


@pytest.fixture
def cluster(certificates):
    certificate, key = certificates.make("node")

    class TlsNode(Node):
        def command(self):
            words = super().command()
            words[words.index("--port") + 1] = "0"
            return words + [
                "--tls-port", str(self.port), "--tls-cluster", "yes", "--tls-replication", "yes",
                "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file",
                certificates.file("ca.crt"), "--requirepass", SECRET, "--masterauth", SECRET]

        def client(self, **options):
            return super().client(ssl=True, ssl_ca_certs=certificates.file("ca.crt"),
                                  ssl_certfile=certificates.file("client.crt"),
                                  ssl_keyfile=certificates.file("client.key"), password=SECRET,
                                  **options)

    started = Cluster(replicas=0, kind=TlsNode).start()
    yield started
    started.remove()


def test_each_node_is_reached_encrypted_and_with_the_password(follow, items, cluster, certificates,
                                                              database):
    seeds = ",".join(node.address for node in cluster.nodes)
    guard = follow(items(), cache=f"rediss-cluster://:{SECRET}@{seeds}",
                   cache_ca_file=certificates.file("ca.crt"),
                   cache_cert_file=certificates.file("client.crt"),
                   cache_key_file=certificates.file("client.key"))
    client = guard.redis()
    names = [f"plain:{n}" for n in range(60)]
    assert client.mset({name: name for name in names})
    assert client.mget(names) == [name.encode() for name in names]
    for n in range(1, 21):
        assert client.get(f"item:{n}") == b"payload %d" % n
        cluster.wait_for_key(f"item:{n}")
    assert all(node.client().dbsize() for node in cluster.nodes)
    database.execute("UPDATE items SET payload = 'new'")
    for n in range(1, 21):
        wait_until(lambda n=n: client.get(f"item:{n}") == b"new", PATIENCE, "the new value")
    assert SECRET not in guard.log(lines=10**6)
