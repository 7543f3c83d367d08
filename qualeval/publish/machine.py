"""What this machine and its operator are called, gathered when a bundle is made and never stored.

User and host names, addresses of its interfaces, host of the model server, git identity, home
folder, keys in the environment; and what `publish.local.toml` adds (it is never committed):

    names = ["internal project name", "jdoe"]
    keys = ["a password that stands in no variable"]
"""

import os
import re
import socket
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from qualeval.card import Card, is_loopback
from qualeval.errors import OptionError
from qualeval.publish.literals import Literals, literals_of

LOCAL_FILE = "publish.local.toml"

_KEY_NAME = re.compile(r"(?i)api_?key|token$|secret|passw(or)?d|credential")


def gather(run: Path, card: Card | None, folders: Iterable[Path]) -> Literals:
    """The literals of this machine and of the run's card. Raises OptionError for a bad file."""
    names = [*_users(), *_hosts(), *_addresses(), *_git_identity()]
    keys = list(_keys(os.environ))
    if card is not None:
        names += [host for host in map(_host, _urls(card)) if host]
        variable = card.server.api_key_env
        keys += [os.environ[variable]] if variable and variable in os.environ else []
    for folder in folders:
        more_names, more_keys = _local_file(folder / LOCAL_FILE)
        names += more_names
        keys += more_keys
    roots = {}
    for path, placeholder in ((run.parent, "$RUNS"), (run, "$RUN"), (Path.home(), "$HOME")):
        for spelling in {str(path.absolute()), str(path.resolve())}:
            roots[spelling] = placeholder
    return literals_of(names, keys, roots)


def _users() -> Iterator[str]:
    yield from filter(None, map(os.environ.get, ("USER", "LOGNAME", "SUDO_USER")))
    with suppress(ImportError, KeyError, OSError):
        import pwd

        entry = pwd.getpwuid(os.getuid())
        yield entry.pw_name
        full_name = entry.pw_gecos.split(",")[0].strip()
        if " " in full_name:
            yield full_name
    home = Path.home().name
    if home:
        yield home


def _hosts() -> Iterator[str]:
    host = socket.gethostname()
    yield host
    yield host.partition(".")[0]
    # Other names of this host; asking the network for them could take its time.
    for line in _lines(Path("/etc/hosts")):
        words = line.partition("#")[0].split()[1:]
        if host in words:
            yield from words


def _addresses() -> Iterator[str]:
    """Addresses of the interfaces, where the kernel tells them in a file."""
    before = ""
    for line in _lines(Path("/proc/net/fib_trie")):
        if "/32 host LOCAL" in line and not before.startswith("127."):
            yield before
        before = line.split()[-1] if line.strip() else ""
    for line in _lines(Path("/proc/net/if_inet6")):
        digits, *_, card = line.split()
        if card != "lo":
            import ipaddress

            yield str(ipaddress.IPv6Address(int(digits, 16)))
    with suppress(OSError):
        for path in Path("/sys/class/net").iterdir():
            for line in _lines(path / "address"):
                if line.strip().strip("0:"):
                    yield line.strip()


def _git_identity() -> Iterator[str]:
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for path in (Path.home() / ".gitconfig", config / "git" / "config", Path(".git/config")):
        section = ""
        for line in _lines(path):
            name, _, value = (part.strip() for part in line.partition("="))
            section = name.lower() if name.startswith("[") else section
            if section == "[user]" and name.lower() in ("name", "email") and value:
                yield value.strip('"')
    yield from filter(None, map(os.environ.get, ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL")))


def _keys(environment: Mapping[str, str]) -> Iterator[str]:
    """Values of variables that are named like keys and look like none of a language's words."""
    for name, value in environment.items():
        is_word = value.isalpha() or value.startswith(("/", "http")) or value.isdigit()
        if _KEY_NAME.search(name) and len(value) >= 8 and not is_word:
            yield value


def _urls(card: Card) -> list[str]:
    return [place.base_url for place in card.server.places() if not card.server.embedded]


def _host(url: str) -> str | None:
    return None if is_loopback(url) else urlsplit(url).hostname


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _local_file(path: Path) -> tuple[list[str], list[str]]:
    """(names, keys) of a file; none when it is not there."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return [], []
    except (OSError, ValueError):
        raise OptionError(f"{path.name}: cannot be read as TOML") from None
    for name, values in given.items():
        if name not in ("names", "keys"):
            raise OptionError(f"{path.name}: '{name}' is unknown; there are: names, keys")
        if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
            raise OptionError(f"{path.name}: {name} must be a list of texts")
    return given.get("names", []), given.get("keys", [])
