"""Fixtures: certificates made for the run, token files, generated stubs, channels."""

import importlib
import pathlib
import subprocess
import sys

import grpc
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from server_process import ROOT  # noqa: E402

DRAFT_TOKEN, ADMIN_TOKEN, METRICS_TOKEN = "draft-token-0123456789", "admin-token-0123456789", "metrics-token-0123456789"


class Authority:
    """A certificate authority of the test's own; the openssl program does the work."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.certificate = folder / "ca.pem"
        self.key = folder / "ca.key"
        self._openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test authority",
                      "-keyout", self.key, "-out", self.certificate)

    def issue(self, name, host=None):
        """(certificate, key) for `name`; of a server at `host`, or of a client."""
        key, request, certificate = (self.folder / f"{name}.{end}" for end in ("key", "csr", "pem"))
        self._openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName=IP:{host},DNS:localhost\n" if host else f"subjectAltName=DNS:{name}\n")
        self._openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                      "-days", "2", "-extfile", extensions, "-out", certificate)
        key.chmod(0o600)
        return certificate, key

    @staticmethod
    def _openssl(*words):
        done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority") / "ca")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    """An authority that nobody trusts."""
    return Authority(tmp_path_factory.mktemp("stranger") / "ca")


@pytest.fixture(scope="session")
def pb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT}/proto", f"--python_out={folder}",
                    f"--grpc_python_out={folder}", "aerie/v1/draft.proto", "aerie/v1/admin.proto"], check=True)
    sys.path.insert(0, str(folder))
    messages = importlib.import_module("aerie.v1.draft_pb2")
    messages.Stub = importlib.import_module("aerie.v1.draft_pb2_grpc").DraftServiceStub
    messages.admin = importlib.import_module("aerie.v1.admin_pb2")
    messages.AdminStub = importlib.import_module("aerie.v1.admin_pb2_grpc").AdminServiceStub
    return messages


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "tokens"
    path.touch(mode=0o600)
    path.write_text(f"# roles name token\ndraft worker {DRAFT_TOKEN}\nadmin operator {ADMIN_TOKEN}\n"
                    f"metrics prometheus {METRICS_TOKEN}\n")
    return path


@pytest.fixture
def dial():
    """dial(address, ca=..., pair=...) -> channel, closed after the test; without `ca` in the clear."""
    channels = []

    def make(address, ca=None, pair=None):
        options = [("grpc.use_local_subchannel_pool", 1)]
        if ca is None:
            channel = grpc.insecure_channel(address, options)
        else:
            certificate, key = (path.read_bytes() for path in pair) if pair else (None, None)
            channel = grpc.secure_channel(
                address, grpc.ssl_channel_credentials(pathlib.Path(ca).read_bytes(), key, certificate), options)
        channels.append(channel)
        return channel

    yield make
    for channel in channels:
        channel.close()


def bearer(token):
    return [("authorization", f"Bearer {token}")]
