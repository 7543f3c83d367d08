"""What must be caught, put together at run time, so that no scanner finds anything in this tree.

for rule, sample in SAMPLES: ...            # (rule id, a text that the rule must find)
for name, text in forms(sample.value): ...  # raw, escaped for JSON, split, full width, percent
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import quote

from qualeval.publish.allowlist import Allowlist
from qualeval.publish.checker import Checker, Place
from qualeval.publish.literals import Literals, literals_of
from qualeval.publish.overlap import Protected
from qualeval.publish.rules import RuleBook, TextClass, load_rules

KEY = bytes(range(32))
UPPER, LOWER, DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789"
HEX = DIGITS + "abcdef"
ALNUM = UPPER + LOWER + DIGITS

HOST = "quartz-node-17"
SECRET = "".join(("k3y", "-of-the-", "tests-", "000111"))
GATED = (
    "A wobbling sprocket of mass seven hides below the marble staircase while twelve cautious owls "
    "count the copper lanterns twice before midnight comes and the gatekeeper falls asleep"
)
OPTION = "the violet sprocket turns around eleven times"


def made(seed: int, letters: str, length: int) -> str:
    """So many letters that look random and are always the same."""
    random = Random(seed)
    return "".join(random.choice(letters) for _ in range(length))


def uuid(seed: int) -> str:
    return "-".join(made(seed + n, HEX, length) for n, length in enumerate((8, 4, 4, 4, 12)))


def jwt(seed: int) -> str:
    import base64

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256'})}.{part({'sub': made(seed, ALNUM, 24)})}.{made(seed, HEX, 44)}"


@dataclass(frozen=True)
class Sample:
    """A text and the value in it that must go; `split` where a line break may stand inside it."""

    text: str
    value: str
    split: bool = True


def _tokens(seed: int) -> Iterator[tuple[str, str]]:
    def an(length: int, letters: str = ALNUM) -> str:
        return made(seed + length, letters, length)

    yield "token-aws", "AK" + "IA" + made(seed, UPPER, 12) + "4K7Q"
    yield "token-azure", "Account" + "Key=" + an(86) + "=="
    yield "token-cloudant", "cloudant_" + "password = '" + an(64, HEX) + "'"
    yield "token-discord", "M" + an(23) + "." + an(6) + "." + an(27)
    yield "token-github", "gh" + "p_" + an(36)
    yield "token-gitlab", "gl" + "pat-" + an(20)
    yield "token-google", "AI" + "za" + an(35)
    yield "token-huggingface", "h" + "f_" + an(34)
    yield "token-ibm", "ibm_cloud_" + "api_key = '" + an(44) + "'"
    yield "token-ibm-cos", "cos_" + "secret_access_key = '" + an(48, HEX) + "'"
    yield "token-jwt", jwt(seed)
    yield "token-mailchimp", an(32, HEX) + "-" + "us12"
    yield "token-npm", "np" + "m_" + an(36)
    yield "token-nvidia", "nv" + "api-" + an(64)
    yield "token-openai", "s" + "k-" + an(20) + "T3Blbk" + "FJ" + made(seed + 1, ALNUM, 20)
    yield "token-openai-project", "s" + "k-proj-" + an(48)
    yield "token-anthropic", "s" + "k-ant-api03-" + an(60)
    yield "token-pypi", "py" + "pi-AgEIcHlwaS5vcmc" + an(80)
    yield "token-sendgrid", "S" + "G." + an(22) + "." + an(43)
    yield "token-slack", "xo" + "xb-" + an(11, DIGITS) + "-" + an(24)
    yield "token-softlayer", "softlayer_" + "api_key = '" + an(64, LOWER + DIGITS) + "'"
    yield "token-square", "sq0" + "csp-" + an(43)
    yield "token-stripe", "sk" + "_live_" + an(24)
    yield "token-telegram", an(10, "123456789") + ":A" + "A" + an(33)
    yield "token-twilio", "A" + "C" + an(32, HEX)


def _heads() -> Iterator[tuple[str, Sample]]:
    for kind in ("", "RSA ", "OPENSSH "):
        head = "-----BE" + f"GIN {kind}PRIVATE " + "KEY-----"
        yield "private-key", Sample(f"here: {head}\nMII", head)


def _addresses() -> Iterator[tuple[str, Sample]]:
    for seed in range(3):
        word = made(seed, LOWER + DIGITS, 12)
        pair = f"joan{seed}:{word}"
        yield "url-credentials", Sample(f"at https://{pair}@files.{word}.io/x", pair, False)
        value = f"{word}A7{word}"
        header = ("Authorization: " + "Bearer ", "api_" + "key=", "--api" + "-key ")[seed]
        yield "auth-header", Sample(f"curl {header}{value} now", value, False)
        home = ("/home/", "/Users/", "C:\\Users\\")[seed]
        end = "\\" if "\\" in home else "/"
        yield "home-path", Sample(f"in {home}j{word}{end}evals", f"{home}j{word}", False)
        ip = ("192.168.7.31", "10.20.30.40", "fd00:12:34::7")[seed]
        yield "private-ip", Sample(f"server {ip} is up", ip, False)
        mac = ":".join(made(seed + 9 + n, HEX, 2) for n in range(6))
        yield "mac", Sample(f"card {mac} is up", mac, False)
        host = f"box-{word}." + ("local", "lan", "tail1234.ts.net")[seed]
        yield "internal-host", Sample(f"{host} starts", host, False)
        mail = f"j.{word}@{word}." + ("org", "de", "co.uk")[seed]
        yield "email", Sample(f"write to {mail} please", mail, False)
        phone = ("+49 30 5550123", "+1 415 555 0132", "tel:+4420755501")[seed]
        yield "phone", Sample(f"call {phone} now", phone, False)
        canary = f"canary GUID {uuid(seed)}"
        yield "canary", Sample(f"BENCHMARK DATA. {canary} end", uuid(seed), False)
    names = (HOST, SECRET, "Jane Q. Operator")
    for name in names:
        yield "local-literal", Sample(f"it said {name} there", name)
    words = GATED.split()
    for start in (0, 4, 9):
        run = " ".join(words[start : start + 14])
        yield "gated-overlap", Sample(f"The question was: {run}. So?", run, False)
    yield "gated-overlap", Sample(f"I take it that {OPTION}, yes.", OPTION, False)


def samples() -> list[tuple[str, Sample]]:
    """(rule, sample), three for each rule."""
    found = []
    for seed in (11, 222, 3333):
        for rule, token in _tokens(seed):
            value = token.partition(" = '")[2].rstrip("'") or token
            found.append((rule, Sample(f"I use {token} for it", value, value == token)))
    return [*found, *_heads(), *_addresses()]


SAMPLES = samples()


def full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" for c in text)


def split(text: str) -> str:
    """A line break in the middle."""
    return text[: len(text) // 2] + "\n" + text[len(text) // 2 :]


def forms(sample: Sample) -> dict[str, str]:
    """The text of a sample with its value in each form."""
    made_forms = {
        "raw": sample.value,
        "json": escaped(sample.value),
        "json string": json.dumps(sample.value)[1:-1],
        "full width": full_width(sample.value),
        "percent": percent(sample.value),
        "percent where needed": quote(sample.value, safe=""),
    }
    if sample.split:
        made_forms["split"] = split(sample.value)
        made_forms["split in json"] = split(sample.value).replace("\n", "\\n")
    before, _, after = sample.text.partition(sample.value)
    return {name: before + value + after for name, value in made_forms.items()}


def protected() -> Protected:
    lists = Protected()
    lists.add_row({"Question": GATED, "options": [OPTION, "red", "42"], "Canary String": uuid(77)})
    return lists


def local() -> Literals:
    return literals_of([HOST, "Jane Q. Operator", "max"], [SECRET], {"/srv/evals/runs": "$RUNS"})


def checker(book: RuleBook | None = None, **set_: object) -> Checker:
    """A checker of the shipped rules, with made-up literals and a made-up protected list."""
    parts = {"literals": local(), "protected": protected(), "allow": Allowlist(KEY)} | set_
    return Checker(book or load_rules(), **parts)  # type: ignore[arg-type]


def place(kind: TextClass = "model_text", field: str = "text", *, blind: bool = False) -> Place:
    return Place("mmlupro", field, kind, blind)


def rules_in(text: str, kind: TextClass = "model_text", book: RuleBook | None = None) -> set[str]:
    """Ids of the rules that find something."""
    return {f.rule for f in checker(book).check(text, place(kind)).findings}


def benign() -> list[tuple[str, str]]:
    """(why, text) of the corpus that must pass."""
    path = Path(__file__).parent / "publish" / "must_pass.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [(row["why"], row["text"]) for row in rows]
