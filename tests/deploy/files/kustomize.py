"""As much of kustomize as deploy/kubernetes uses, so that its overlays are checked on machines without it.

What one would get wrong: this is no kustomize. Whatever it does not know it refuses, and where the real one is
installed a test compares the two. Generated ConfigMaps keep their plain names here.
"""

import copy
import pathlib

import yaml


def build(folder):
    """[resource] of an overlay, as dictionaries."""
    folder = pathlib.Path(folder)
    plan = yaml.safe_load((folder / "kustomization.yaml").read_text())
    known = {"apiVersion", "kind", "resources", "namespace", "labels", "patches", "configMapGenerator"}
    assert set(plan) <= known, f"{folder} uses {set(plan) - known}; expected only {known}; teach this program"
    resources = []
    for name in plan["resources"]:
        path = (folder / name).resolve()
        if path.is_dir():
            resources += build(path)
        else:
            assert path.parent == folder.resolve(), f"{path} lies outside {folder}, which kustomize refuses"
            resources += [each for each in yaml.safe_load_all(path.read_text()) if each is not None]
    for generator in plan.get("configMapGenerator", []):
        data = {file: (folder / file).read_text() for file in generator["files"]}
        resources.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data})
    for patch in plan.get("patches", []):
        _patch(resources, patch)
    for resource in resources:
        for labels in plan.get("labels", []):
            assert set(labels) == {"pairs"}, f"{set(labels)} of labels: expected pairs alone; teach this program"
            resource["metadata"].setdefault("labels", {}).update(labels["pairs"])
        if "namespace" in plan:
            resource["metadata"]["namespace"] = plan["namespace"]
    return resources


def _patch(resources, patch):
    target, hit = patch["target"], 0
    for resource in resources:
        if resource["kind"] == target["kind"] and resource["metadata"]["name"] == target["name"]:
            hit += 1
            for operation in yaml.safe_load(patch["patch"]):
                _apply(resource, operation)
    assert hit, f"the patch of {target} hits nothing"


def _apply(resource, operation):
    *way, last = operation["path"].strip("/").split("/")
    place = resource
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place[step]
    assert last in place, f"{operation['path']} is not there"
    if operation["op"] == "remove":
        del place[last]
    else:
        assert operation["op"] == "replace", f"{operation['op']} is not known here; teach this program"
        place[last] = operation["value"]


def by_name(resources):
    """{(kind, name): resource}"""
    return {(each["kind"], each["metadata"]["name"]): copy.deepcopy(each) for each in resources}
