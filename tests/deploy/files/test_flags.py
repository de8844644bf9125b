"""Every flag and variable that a manifest, an image or a unit gives to a program exists, and limits fit each other."""

import re
import sys

import yaml

from conftest import ROOT, containers, pod_specs, seconds

sys.path.insert(0, str(ROOT / "tests/deploy/docker"))
import dockerfile  # noqa: E402

# Read by the unit's own shell line, and by nobody else.
OF_THE_UNIT = {"AERIE_PROBE"}


def drafters(resources):
    for _, pod in pod_specs(resources):
        for container in containers(pod):
            if container["image"].startswith("aerie:"):
                yield pod, container


def test_the_manifests_give_flags_that_the_server_has(resources, flags):
    seen = 0
    for _, container in drafters(resources):
        words = list(container["args"])
        for probe in ("startupProbe", "readinessProbe"):
            command = container[probe].get("exec", {}).get("command")
            if command:
                assert command[0] == dockerfile.entry_point()[0]
                words += command[1:]
        for word in words:
            if word.startswith("--"):
                assert word.split("=")[0] in flags, word
                seen += 1
    assert seen >= 6


def test_a_pod_has_time_to_drain(resources):
    for pod, container in drafters(resources):
        (drain,) = [word.split("=")[1] for word in container["args"] if word.startswith("--drain-timeout=")]
        assert pod["terminationGracePeriodSeconds"] >= seconds(drain) + 10


def test_the_manifests_use_the_images_user_and_paths(resources):
    for pod, container in drafters(resources):
        context = pod["securityContext"]
        assert (context["runAsUser"], context["runAsGroup"]) == dockerfile.user()
        for flag, variable in (("--drafter", "AERIE_DRAFTER"), ("--target", "AERIE_TARGET")):
            assert f"{flag}={dockerfile.environment()[variable]}" in container["args"]


def test_the_image_has_variables_and_flags_that_the_server_has(flags):
    variables = {name for name in dockerfile.environment() if name.startswith("AERIE_")}
    assert variables and variables <= set(flags.values())
    program, *words = dockerfile.health_command()
    assert program == dockerfile.entry_point()[0]
    assert [word for word in words if word.startswith("--")] == ["--probe"] and "--probe" in flags
    assert words[-1] in dockerfile.environment()["AERIE_LISTEN"].split(",")


def test_the_compose_file_runs_the_image_as_it_is_meant_to():
    (service,) = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"].values()
    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    user = dockerfile.user()
    assert f"/run/aerie:uid={user[0]},gid={user[1]},mode=0750" in service["tmpfs"]


def environment_file():
    text = (ROOT / "deploy/systemd/aerie.env").read_text()
    return dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))


def test_the_units_environment_has_variables_that_the_server_has(flags):
    assert set(environment_file()) - OF_THE_UNIT <= set(flags.values())
    assert environment_file()["AERIE_PROBE"] in environment_file()["AERIE_LISTEN"].split(",")


def test_the_unit_waits_longer_than_a_drain(flags):
    unit = (ROOT / "deploy/systemd/aerie.service.in").read_text()
    assert "--probe" in unit and "--probe" in flags
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE).group(1)) >= seconds(
        environment_file()["AERIE_DRAIN_TIMEOUT"]) + 10


def test_image_manifests_and_programs_have_one_version(resources):
    version = re.search(r"^project\(aerie VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)
    assert [arguments for name, arguments in dockerfile.stage(None) if name == "ARG" and "VERSION" in arguments] == [
        f"VERSION={version}"]
    assert {container["image"] for _, container in drafters(resources)} == {f"aerie:{version}"}
