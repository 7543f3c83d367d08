"""What a rule found, looked at again: is it what the rule is about? Named in `rules.toml`.

A check takes the found text and says whether it counts; each is there for a pattern's false alarms.
"""

import ipaddress
from collections.abc import Callable, Mapping

_MADE_UP = ("example", "xxxx", "your", "redacted", "placeholder", "changeme", "dummy")
_PLAIN_WORDS = frozenset(
    ("user", "username", "name", "login", "admin", "root", "me", "alice", "bob", "guest")
    + ("pass", "password", "passwd", "pw", "pwd", "secret", "token", "key", "apikey", "api_key")
)
_NOT_HOSTS = ("threading", "self", "_thread", "werkzeug", "flask")
_EXAMPLES = frozenset(("example.com", "example.org", "example.net", "example.edu", "test.com"))
_SHARED = ipaddress.ip_network("100.64.0.0/10")
"""Carrier-grade addresses, which private overlay networks hand out."""
_FOR_DOCUMENTS = tuple(
    map(ipaddress.ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "0.0.0.0/8"))
)


def random_word(found: str) -> bool:
    """No example of a manual, and of more than a few characters: a row of x is no key."""
    low = found.lower()
    return len(set(low)) >= 8 and not any(word in low for word in _MADE_UP)


def whole_random_word(found: str) -> bool:
    """A key with a digit or many letters: `ACCA...` and `ASIA...` also begin genes and words."""
    return random_word(found) and (any(c.isdigit() for c in found) or len(set(found)) >= 12)


def looks_random(found: str) -> bool:
    """Holds digits and letters, is no path and no example."""
    mixed = any(c.isdigit() for c in found) and any(c.isalpha() for c in found)
    return mixed and random_word(found) and "/" not in found[:2]


def real_credentials(found: str) -> bool:
    """Neither words that stand for them, nor slots of a template."""
    user, _, password = found.partition(":")
    if user.lower() in _PLAIN_WORDS and password.lower() in _PLAIN_WORDS:
        return False
    return not any(c in found for c in "{}$[]%*") and "..." not in found


def private_address(found: str) -> bool:
    """An address of a private network; loopback and addresses for documents are none."""
    try:
        address = ipaddress.ip_address(found)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return False
    if address.version == 4:
        documents = any(address in network for network in _FOR_DOCUMENTS)
        return (address.is_private or address in _SHARED) and not documents
    return address.is_private or address.is_link_local


def card_address(found: str) -> bool:
    """Not all alike, and with a letter or a leading zero: 12-34-56-78-90-12 may be any number."""
    digits = found.replace("-", ":").split(":")
    return len(set(digits)) > 1 and (":" in found or any(c.isalpha() for c in found))


def host_name(found: str) -> bool:
    """No attribute of a programming language that is called like a domain."""
    first, *rest = found.lower().split(".")
    return first not in _NOT_HOSTS and bool(rest)


def real_mail(found: str) -> bool:
    """Not of a domain that is for examples, and no version after an at sign."""
    domain = found.lower().rpartition("@")[2]
    top = domain.rpartition(".")[2]
    return domain not in _EXAMPLES and top not in ("example", "invalid", "test", "localhost")


def phone_number(found: str) -> bool:
    """Between 8 and 15 digits, as the plan of numbers has it, not all alike."""
    digits = [c for c in found if c.isdigit()]
    return 8 <= len(digits) <= 15 and len(set(digits)) > 2


CHECKS: Mapping[str, Callable[[str], bool]] = {
    check.__name__: check
    for check in (
        *(random_word, whole_random_word, looks_random, real_credentials),
        *(private_address, card_address, host_name, real_mail, phone_number),
    )
}
