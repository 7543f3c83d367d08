"""From qualeval's side into a sandbox: limits, folders, namespaces, then the zygote.

Runs in a process of its own, started with an empty environment. What has to be done as root (a
folder that only root may enter is shown elsewhere) is done before root is given up.
"""

import os
import resource
import stat
from typing import Any

import kernel

NOBODY = 65534
"""Who a program believes to be, where it has users to itself."""

FIRST_STRANGER, STRANGERS = 30_000, 30_000
"""User ids that distributions give to nobody, and that a container has too."""
STACK_BYTES = 256 * 1024**2
"""Deep recursion in C needs it, and only a limit set before `exec` reaches the main thread."""

DEVICES = ("null", "full", "random", "urandom")
"""Not `zero`: mapped shared it is memory that no process is seen to have."""


def main(settings: dict[str, Any]) -> None:
    """Become the sandbox that `settings` describe. Never returns. Raises OSError.

    `rung` is how, `shown` maps places inside to those outside, `command` is the zygote's,
    `environment` all that it gets, `bubblewrap` the path of bwrap.
    """
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # the first that the kernel ends when memory is short
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    stack = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (stack, hard))
    os.umask(0o022)
    command, environment, shown = settings["command"], settings["environment"], settings["shown"]
    if os.geteuid() == 0:
        make_reachable(list(shown.values()))
        give_up_root()
    if settings["rung"] == "bubblewrap":
        command = [settings["bubblewrap"], *bubblewrap_options(shown), *command]
    elif settings["rung"] == "namespaces":
        enter_namespaces(shown)
    os.execve(command[0], command, environment)


def bubblewrap_options(shown: dict[str, str]) -> list[str]:
    """What bwrap is told; `shown` maps each place inside to where it is found."""
    options = ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
    options += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    options += ["--unshare-cgroup-try", "--hostname", "sandbox", "--new-session"]
    options += ["--cap-drop", "ALL"]
    options += ["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP"]
    for inside, outside in shown.items():
        options += ["--ro-bind", outside, inside]
    options += ["--dir", "/tmp", "--tmpfs", "/dev"]
    for device in DEVICES:
        options += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    options += ["--symlink", "/tmp/stdin", "/dev/stdin"]
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"]


def give_up_root() -> None:
    """Become a user that nobody else is, for good: what the kernel counts by user (tasks, pages of
    pipes, pending signals) is then that of this sandbox alone, whatever `nobody` runs elsewhere.
    """
    stranger = FIRST_STRANGER + int.from_bytes(os.urandom(4), "little") % STRANGERS
    os.setgroups([])
    os.setresgid(stranger, stranger, stranger)
    os.setresuid(stranger, stranger, stranger)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # /proc/self stays our own
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def make_reachable(paths: list[str]) -> None:
    """As root: let everybody reach these paths below folders that only root may enter.

    In a mount namespace of our own such a folder holds just what is wanted of it; nobody else sees
    that, and it is gone with us.
    """
    closed: dict[str, list[str]] = {}
    for path in paths:
        parts = path.split("/")[1:-1]
        for length in range(1, len(parts) + 1):
            folder = "/" + "/".join(parts[:length])
            if not os.stat(folder).st_mode & stat.S_IXOTH:
                closed.setdefault(folder, []).append(path)
                break
    if not closed:
        return
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    for folder, wanted in closed.items():
        handles = {path: os.open(path, os.O_PATH) for path in wanted}
        kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
        for path, handle in handles.items():
            bind(f"/proc/self/fd/{handle}", path)
            os.close(handle)


def bind(source: str, target: str) -> None:
    """Show a file, folder or device at a new place."""
    os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
    if os.path.isdir(source):
        os.makedirs(target, 0o755, exist_ok=True)
    else:
        with open(target, "x"):
            pass
    kernel.mount(source, target, None, kernel.MS_BIND | kernel.MS_REC)


def make_read_only(target: str) -> None:
    """Remount what is there. How its file system was mounted has to be said again."""
    told = os.statvfs(target).f_flag
    flags = kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY
    flags |= kernel.MS_NOSUID | kernel.MS_NODEV
    for have, keep in (
        (os.ST_NOEXEC, kernel.MS_NOEXEC),
        (os.ST_NOATIME, kernel.MS_NOATIME),
        (os.ST_NODIRATIME, kernel.MS_NODIRATIME),
        (os.ST_RELATIME, kernel.MS_RELATIME),
    ):
        flags |= keep if told & have else 0
    kernel.mount("none", target, None, flags)


def enter_namespaces(shown: dict[str, str]) -> None:
    """What bubblewrap does, by hand."""
    outer = (os.getuid(), os.getgid())
    kernel.unshare(
        kernel.CLONE_NEWUSER
        | kernel.CLONE_NEWNS
        | kernel.CLONE_NEWNET
        | kernel.CLONE_NEWIPC
        | kernel.CLONE_NEWUTS
        | kernel.CLONE_NEWCGROUP
    )
    kernel.set_host_name("sandbox")
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{NOBODY} {outer[0]} 1"),
        ("gid_map", f"{NOBODY} {outer[1]} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    handles = {inside: os.open(outside, os.O_PATH) for inside, outside in shown.items()}
    handles |= {f"/dev/{name}": os.open(f"/dev/{name}", os.O_PATH) for name in DEVICES}
    root = "/tmp"
    kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=755")
    for inside, handle in handles.items():
        bind(f"/proc/self/fd/{handle}", root + inside)
        os.close(handle)
        if not inside.startswith("/dev/"):
            make_read_only(root + inside)
    os.mkdir(f"{root}/tmp", 0o755)
    os.symlink("/tmp/stdin", f"{root}/dev/stdin")
    os.chdir(root)
    kernel.pivot_root(".", ".")
    kernel.unmount(".")
    os.chdir("/")
    make_read_only("/")
    kernel.keep_capabilities(kernel.CAP_SYS_ADMIN, kernel.CAP_SETPCAP)
