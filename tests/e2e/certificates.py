"""Certificates for tests of TLS."""
import subprocess


class Certificates:
    """An authority of its own, and what it has signed."""

    def __init__(self, directory):
        self.directory = directory
        self._openssl("req", "-x509", *self._key("ca"), "-out", self.file("ca.crt"),
                      "-subj", "/CN=authority", "-days", "2",
                      "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def file(self, name):
        return str(self.directory / name)

    def _openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)

    def _key(self, name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-keyout", self.file(name + ".key")]

    def make(self, name, subject="127.0.0.1"):
        """NAME.crt and NAME.key, for this machine. Python checks them as RFC 5280 has it."""
        extensions = self.directory / "extensions"
        extensions.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n"
                              "keyUsage=critical,digitalSignature\n"
                              "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")
        self._openssl("req", *self._key(name), "-out", self.file("request"), "-subj",
                      f"/CN={subject}")
        self._openssl("x509", "-req", "-in", self.file("request"), "-CA", self.file("ca.crt"),
                      "-CAkey", self.file("ca.key"), "-CAcreateserial", "-days", "2",
                      "-extfile", str(extensions), "-out", self.file(name + ".crt"))
        return self.file(name + ".crt"), self.file(name + ".key")

    def settings(self, name):
        """Of a guard that shows this one to its clients."""
        return {"tls_cert_file": self.file(name + ".crt"), "tls_key_file": self.file(name + ".key")}
