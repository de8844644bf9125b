"""A control plane for gRPC's xDS clients: serves deploy/proxy/xds' resources, and again after SIGHUP.

control_plane.py ADDRESS RESOURCES. Runs in the environment build/deploy/venv, which has Envoy's messages; they must be
read strictly, so a key that does not exist ends the program.
"""

import queue
import signal
import sys
import threading
from concurrent import futures

import grpc
import yaml
from envoy.config.cluster.v3 import cluster_pb2  # noqa: F401  (what a file may name must have been imported)
from envoy.config.endpoint.v3 import endpoint_pb2  # noqa: F401
from envoy.config.listener.v3 import listener_pb2  # noqa: F401
from envoy.config.route.v3 import route_pb2  # noqa: F401
from envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2  # noqa: F401
from envoy.service.discovery.v3 import ads_pb2_grpc, discovery_pb2
from google.protobuf import any_pb2, json_format


class ControlPlane(ads_pb2_grpc.AggregatedDiscoveryServiceServicer):
    def __init__(self, path):
        self._path, self._lock, self._version, self._streams = path, threading.Lock(), 0, set()
        self.read()

    def read(self):
        document = yaml.safe_load(open(self._path).read())
        resources = {}
        for each in document["resources"]:
            packed = json_format.ParseDict(each, any_pb2.Any())
            resources.setdefault(packed.type_url, []).append(packed)
        with self._lock:
            self._version += 1
            self._resources = resources
            for stream in self._streams:
                stream.put(None)

    def answer(self, kind):
        with self._lock:
            version = str(self._version)
            return discovery_pb2.DiscoveryResponse(version_info=version, nonce=version, type_url=kind,
                                                   resources=self._resources.get(kind, []))

    def StreamAggregatedResources(self, requests, context):
        events = queue.SimpleQueue()
        with self._lock:
            self._streams.add(events)

        def receive():
            for request in requests:
                events.put(request)
            events.put(StopIteration)

        threading.Thread(target=receive, daemon=True).start()
        wanted = {}  # By type: the names that were asked for last.
        while (event := events.get()) is not StopIteration:
            if event is None:
                for kind in wanted:
                    yield self.answer(kind)
                continue
            if event.HasField("error_detail"):
                print(f"the client refuses {event.type_url}: {event.error_detail.message}", flush=True)
            # What repeats the names only says that the last answer was taken.
            if wanted.get(event.type_url) != list(event.resource_names):
                wanted[event.type_url] = list(event.resource_names)
                yield self.answer(event.type_url)
        with self._lock:
            self._streams.discard(events)


def main(address, path):
    plane = ControlPlane(path)
    signal.signal(signal.SIGHUP, lambda *_: plane.read())
    server = grpc.server(futures.ThreadPoolExecutor(16))
    ads_pb2_grpc.add_AggregatedDiscoveryServiceServicer_to_server(plane, server)
    assert server.add_insecure_port(address), f"{address} is taken"
    server.start()
    server.wait_for_termination()


main(*sys.argv[1:])
