"""A second version of a head for which the machine has no memory: refused before it is read, the first one serves on."""

import json
import subprocess

from server_process import BINARY, PATIENCE, ServerProcess


def admin(server, *words):
    done = subprocess.run([str(word) for word in (BINARY.with_name("aerie-admin"), "--admin-address",
                                                  server.ports["admin"], *words)], capture_output=True, text=True,
                          timeout=PATIENCE)
    return done.returncode, done.stdout, done.stderr


def test_a_reload_for_which_there_is_no_memory_leaves_the_old_head(tmp_path):
    # More draft KV than the machine has is reserved at the start and never touched.
    with open("/proc/meminfo") as file:
        kib = next(int(line.split()[1]) for line in file if line.startswith("MemTotal:"))
    with ServerProcess(tmp_path, "--admin-listen", "127.0.0.1:0", "--kv-memory", f"{2 * kib}KiB") as server:
        code, out, err = admin(server, "reload")
        assert (code, out) == (5, "")
        assert f"draft KV {2 * kib / 1024:.1f} MiB) and there are " in err
        assert "; expected room for it beside what serves, which goes on; give the server more memory" in err
        code, out, _ = admin(server, "drafters", "--json")
        assert code == 0
        assert [drafter["state"] for drafter in json.loads(out)["drafters"]] == ["DRAFTER_STATE_SERVING"]
        assert server.metric("aerie_drafter_reloads_total", result="failed") == 1
