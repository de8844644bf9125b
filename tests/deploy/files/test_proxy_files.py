"""deploy/proxy: each program takes its configuration, and all of them hash what the clients send."""

import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

from conftest import KUBERNETES, ROOT, seconds

PROXY = ROOT / "deploy/proxy"
ENVOY = ROOT / "build/deploy/venv/bin/envoy"
METADATA = "aerie-session"


def test_the_clients_send_what_the_proxies_hash():
    assert f'kMetadataKey[] = "{METADATA}"' in (ROOT / "client/session_key.cc").read_text()
    assert f'("{METADATA}", self.key)' in (ROOT / "client/python/aerie_draft/transport.py").read_text()
    assert f"balance hdr({METADATA})" in (PROXY / "haproxy.cfg").read_text()
    assert f"$http_{METADATA.replace('-', '_')}" in (PROXY / "nginx.conf").read_text()
    for file in (PROXY / "envoy.yaml", KUBERNETES / "overlays/scaled-out/envoy.yaml", PROXY / "xds/resources.yaml"):
        assert f"header_name: {METADATA}" in file.read_text()


def test_haproxy_takes_its_configuration():
    done = subprocess.run(["haproxy", "-c", "-f", PROXY / "haproxy.cfg"], capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stdout + done.stderr


def test_haproxys_health_check_is_a_call_of_the_health_service():
    """Frames and header fields, read back from the bytes in the configuration."""
    text = (PROXY / "haproxy.cfg").read_text()
    preface, *frames = [bytes.fromhex(word) for word in re.findall(r"send-binary (\S+)", text)]
    assert preface == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    settings, headers, data = frames
    for frame, kind in ((settings, 4), (headers, 1), (data, 0)):
        assert int.from_bytes(frame[:3], "big") == len(frame) - 9 and frame[3] == kind
    assert headers[4] == 4  # The header ends here; the call does not.
    assert headers[9:11] == b"\x83\x86"  # POST, http
    for field in (b"/grpc.health.v1.Health/Check", b"application/grpc", b"trailers"):
        assert bytes([len(field)]) + field in headers
    assert data[4] == 1 and data[9:] == bytes(5)  # An empty message, and the end.
    (expected,) = re.findall(r"expect binary (\S+)", text)
    assert bytes.fromhex(expected) == bytes([0, 0, 0, 0, 2, 8, 1])  # A message of two bytes: status = SERVING.


def test_nginx_takes_its_configuration(tmp_path):
    temporary = "".join(f"{kind}_temp_path {tmp_path}/{kind};\n"
                        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n{temporary}"
                                         f"include {PROXY}/nginx.conf;\n}}\n")
    done = subprocess.run(["nginx", "-t", "-e", "stderr", "-c", tmp_path / "nginx.conf"], capture_output=True, text=True)
    assert done.returncode == 0 and "[warn]" not in done.stderr, done.stderr


@pytest.mark.parametrize("file", [PROXY / "envoy.yaml", KUBERNETES / "overlays/scaled-out/envoy.yaml"],
                         ids=["hosts", "cluster"])
def test_envoy_takes_its_configuration(file, tmp_path):
    if not ENVOY.exists():
        pytest.skip("Envoy is not installed: cmake/requirements/proxy.txt has it, tests/run --label proxy installs it")
    text = file.read_text().replace("/etc/envoy/envoy-endpoints.yaml", str(PROXY / "envoy-endpoints.yaml"))
    copy = pathlib.Path(tmp_path / "envoy.yaml")
    copy.write_text(text)
    done = subprocess.run([ENVOY, "--mode", "validate", "-c", copy], capture_output=True, text=True)
    assert done.returncode == 0 and "OK" in done.stdout + done.stderr, done.stderr


def test_envoys_two_configurations_differ_in_where_servers_come_from_alone():
    hosts, cluster = (yaml.safe_load(file.read_text())
                      for file in (PROXY / "envoy.yaml", KUBERNETES / "overlays/scaled-out/envoy.yaml"))
    assert cluster["admin"]["address"]["socket_address"].pop("address") == "0.0.0.0"  # The kubelet asks it.
    assert hosts["admin"]["address"]["socket_address"].pop("address") == "127.0.0.1"
    for configuration, keys in ((hosts, {"type", "eds_cluster_config"}),
                                (cluster, {"type", "load_assignment", "dns_refresh_rate"})):
        (only,) = configuration["static_resources"]["clusters"]
        for key in keys:
            del only[key]
    assert hosts == cluster


def test_streams_may_be_silent_for_longer_than_a_sessions_lease(server_help):
    lease = seconds(re.search(r"--session-lease TIME=(\S+)", server_help).group(1))
    haproxy, nginx = (PROXY / "haproxy.cfg").read_text(), (PROXY / "nginx.conf").read_text()
    for name in ("client", "server"):
        assert seconds(re.search(rf"^ *timeout {name} (\S+)$", haproxy, re.MULTILINE).group(1)) > lease
    stream = nginx[nginx.index("DraftStream"):]
    for name in ("grpc_read_timeout", "grpc_send_timeout", "client_body_timeout"):
        assert seconds(re.search(rf"{name} (\S+);", stream).group(1)) > lease
    assert seconds(re.search(r"stream_idle_timeout: (\S+)", (PROXY / "envoy.yaml").read_text()).group(1)) > lease


def test_the_files_name_the_same_three_servers():
    for name in ("haproxy.cfg", "nginx.conf", "envoy-endpoints.yaml", "xds/resources.yaml"):
        assert re.findall(r"192\.0\.2\.\d+", (PROXY / name).read_text()) == ["192.0.2.11", "192.0.2.12", "192.0.2.13"]


def test_the_programs_of_debian_are_installed():
    for program in ("haproxy", "nginx"):
        assert shutil.which(program), f"{program} is not installed; expected Debian's package; tests/run installs it"
