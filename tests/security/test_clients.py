"""Our own clients with TLS and tokens: the Python client, aerie-admin, aerie-load, aerie-conformance."""

import pathlib
import subprocess
import sys

import pytest

import python_package
from conftest import ADMIN_TOKEN, DRAFT_TOKEN
from server_process import BINARY, PATIENCE, ServerProcess

OVERSEER_TOKEN = "overseer-token-0123456789"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The Python package of this checkout, built: {environment to run it in}."""
    return python_package.build(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def guarded(authority, tmp_path_factory):
    """A server with mutual TLS and tokens, and the files of a client that may do everything."""
    folder = tmp_path_factory.mktemp("guarded")
    certificate, key = authority.issue("guarded", "127.0.0.1")
    tokens = folder / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text(f"draft,admin operator {ADMIN_TOKEN}\ndraft worker {DRAFT_TOKEN}\n"
                      f"admin overseer {OVERSEER_TOKEN}\n")
    client_certificate, client_key = authority.issue("somebody")
    (folder / "token").write_text(ADMIN_TOKEN + "\n")
    files = {"tls_ca": authority.certificate, "tls_cert": client_certificate, "tls_key": client_key,
             "token_file": folder / "token"}
    with ServerProcess(folder, "--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.certificate,
                       "--token-file", tokens, "--admin-listen", "127.0.0.1:0") as process:
        process.files = {name: str(path) for name, path in files.items()}
        yield process


def flags_of(files):
    return [word for name, path in files.items() for word in (f"--{name.replace('_', '-')}", path)]


def run(*words, env=None):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE, env=env)
    return done.returncode, done.stdout, done.stderr


def test_admin_asks_over_mutual_tls_with_a_token(guarded):
    admin = pathlib.Path(BINARY).with_name("aerie-admin")
    where = ("--address", guarded.address, "--admin-address", guarded.ports["admin"])
    code, out, err = run(admin, "info", *where, *flags_of(guarded.files))
    assert code == 0 and "drafter" in out, err
    code, out, err = run(admin, "log-level", *where, *flags_of(guarded.files))
    assert (code, out) == (0, "info\n"), err
    without = {name: path for name, path in guarded.files.items() if name != "token_file"}
    code, _, err = run(admin, "log-level", *where, *flags_of(without))
    assert code == 2 and "certificate's name is not known" in err


def test_admin_names_files_that_do_not_go_together(guarded):
    admin = pathlib.Path(BINARY).with_name("aerie-admin")
    code, _, err = run(admin, "info", "--tls-cert", guarded.files["tls_cert"])
    assert code == 2 and "is given alone; expected --tls-cert and --tls-key together" in err
    code, _, err = run(admin, "info", "--token-file", guarded.folder / "tokens")
    assert code == 2 and "holds no token; expected one line" in err and DRAFT_TOKEN not in err


def load(address, *flags):
    """A short run of the C++ client: (exit code, standard output, standard error)."""
    return run(pathlib.Path(BINARY).with_name("aerie-load"), "--address", address, "--sessions", "1", "--rounds", "3",
               *flags)


@pytest.mark.parametrize("transport", ["unary", "stream"])
def test_the_load_tester_drafts_over_mutual_tls_with_a_token(guarded, transport):
    code, out, err = load(guarded.address, "--transport", transport, *flags_of(guarded.files))
    assert code == 0, out + err


def test_the_load_tester_finds_the_name_that_it_was_told_to(guarded):
    code, out, err = load(guarded.address, *flags_of(guarded.files), "--tls-server-name", "localhost")
    assert code == 0, out + err
    code, _, err = load(guarded.address, *flags_of(guarded.files), "--tls-server-name", "elsewhere")
    assert code == 1 and 'that names "elsewhere"; start it' in err, err


@pytest.mark.parametrize("lacks, message", [
    ("the right authority", "a certificate that those of tls_ca sign and that names this address; start it"),
    ("a certificate", "if it asks for a certificate, tls_cert"),
    ("TLS", "without TLS; start it, mend the address, or give the certificates that sign its own (tls_ca)"),
])
def test_the_load_tester_says_what_to_do_where_no_connection_comes_about(guarded, stranger, lacks, message):
    files = dict(guarded.files)
    if lacks == "the right authority":
        files["tls_ca"] = stranger.certificate
    else:
        del files["tls_cert"], files["tls_key"]
        if lacks == "TLS":
            del files["tls_ca"]
    code, _, err = load(guarded.address, *flags_of(files))
    assert code == 1 and "no connection to a draft server at" in err and message in err, err
    assert ADMIN_TOKEN not in err


def test_the_load_tester_shows_why_its_token_is_refused(guarded, tmp_path):
    files = {**guarded.files, "token_file": tmp_path / "token"}
    # One that may only administer, one that nobody has, and none at all: the certificate's name is not known either.
    for token, message in ((OVERSEER_TOKEN, '"overseer" has not the role draft; expected it for this call; use a '),
                           ("a-wrong-token-0123456789", "the call's token is not known; expected")):
        files["token_file"].write_text(token + "\n")
        code, _, err = load(guarded.address, *flags_of(files))
        assert code == 1 and message in err and token not in err, err
    del files["token_file"]
    code, _, err = load(guarded.address, *flags_of(files))
    assert code == 1 and "the call has no token, and its certificate's name is not known; expected" in err, err


def test_the_load_tester_names_files_that_do_not_go_together(guarded):
    code, _, err = load(guarded.address, "--tls-key", guarded.files["tls_key"])
    assert code == 2 and "is given alone; expected --tls-cert and --tls-key together" in err, err
    code, _, err = load(guarded.address, "--token-file", guarded.folder / "tokens")
    assert code == 2 and "holds no token; expected one line" in err and DRAFT_TOKEN not in err, err
    code, _, err = load(guarded.address, "--tls-ca", guarded.folder / "nothing")
    assert code == 2 and f"--tls-ca {guarded.folder}/nothing cannot be read" in err, err


PYTHON = """
import sys

from aerie_draft import DraftClient, Security

address, transport, *files = sys.argv[1:]
with DraftClient(address, transport=transport, security=Security(*files[:3], "", files[3])) as client:
    info = client.server_info()
    drafter = info.drafters[0]
    print(drafter.name)
"""


@pytest.mark.parametrize("transport", ["unary", "stream"])
def test_the_python_client_asks_over_mutual_tls_with_a_token(guarded, package, transport):
    files = guarded.files
    code, out, err = run(sys.executable, "-c", PYTHON, guarded.address, transport, files["tls_ca"], files["tls_cert"],
                         files["tls_key"], files["token_file"], env=package)
    assert code == 0 and out.strip() == "drafter", err


def test_conformance_tests_a_server_over_mutual_tls_with_a_token(guarded, package):
    code, out, err = run(sys.executable, "-m", "aerie_draft.conformance", "server", guarded.address, "--rule",
                         "S-BYTE-COUNT", *flags_of(guarded.files), env=package)
    assert code == 0, out + err
