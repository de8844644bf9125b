"""A program in another root, as a container engine would run it: own mounts, processes and network, no privileges."""

import os
import pathlib
import shlex
import signal
import subprocess


def mounts(root, read_only, user, binds):
    """Shell commands that put the root together, run in a mount namespace of their own."""
    at = {name: shlex.quote(f"{root}{name}") for name in ("", "/proc", "/tmp", "/run/aerie")}
    lines = ["set -e", "mount --make-rprivate /", f"mount --bind {at['']} {at['']}",
             f"mount -t proc proc {at['/proc']}", f"mount -t tmpfs tmpfs {at['/tmp']}"]
    for device in ("null", "zero", "random", "urandom"):
        lines.append(f"touch {root}/dev/{device}; mount --bind /dev/{device} {root}/dev/{device}")
    for source, target in binds.items():
        lines.append(f"mkdir -p {root}{target} && mount --bind {shlex.quote(str(source))} {root}{target} && "
                     f"mount -o remount,bind,ro {root}{target}")
    if read_only:
        lines.append(f"mount -t tmpfs -o uid={user[0]},gid={user[1]},mode=0750 tmpfs {at['/run/aerie']}")
        lines.append(f"mount -o remount,bind,ro {at['']}")
    return "\n".join(lines)


def unprivileged(user):
    return ["/usr/bin/setpriv", f"--reuid={user[0]}", f"--regid={user[1]}", "--clear-groups", "--no-new-privs",
            "--inh-caps=-all", "--bounding-set=-all"]


def run_step(root, command):
    """A RUN line: as root, with the machine's network."""
    script = mounts(root, False, None, {}) + f"\nexec chroot {shlex.quote(str(root))} " + shlex.join(command)
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "bash", "-c", script], capture_output=True,
                          text=True)


class Sandbox:
    """The program of an image, started; no network but loopback, a read-only root."""

    def __init__(self, root, command, user, environment, binds, log):
        self._user, self._environment = user, environment
        inner = ["chroot", str(root), "/usr/bin/env", "-i", *unprivileged(user), "/usr/bin/env",
                 *[f"{name}={value}" for name, value in environment.items()], *command]
        script = mounts(root, True, user, binds) + "\nip link set lo up\nexec " + shlex.join(inner)
        with open(log, "wb") as out:
            self.process = subprocess.Popen(["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child",
                                             "bash", "-c", script], stdout=out, stderr=out)

    @property
    def pid(self):
        """Of the program, as the machine sees it; 0: not started yet."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        words = children.read_text().split() if children.exists() else []
        return int(words[0]) if words else 0

    def run(self, command):
        """Another program in the same container, as a health check is."""
        return subprocess.run(
            ["nsenter", "--target", str(self.pid), "--mount", "--pid", "--net", "--root", "--wd",
             "/usr/bin/env", "-i", *unprivileged(self._user), "/usr/bin/env",
             *[f"{name}={value}" for name, value in self._environment.items()], *command],
            capture_output=True, text=True)

    def status(self):
        """/proc/PID/status as a dictionary."""
        lines = pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return dict(line.split(":\t", 1) for line in lines if ":\t" in line)

    def close(self):
        # The program itself: it is the first process of its namespace, and all others there end with it. Ending
        # unshare alone would leave it, for a change of user takes away the signal that --kill-child asked for.
        if self.process.poll() is None and self.pid:
            os.kill(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
