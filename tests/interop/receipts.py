#!/usr/bin/env python3
"""The published program that writes and verifies capability tokens and receipts (raucle), asked about caretaker's and made to write its own.

    receipts.py vectors                   its test vectors, from its source distribution in this Python's folder
    receipts.py canonical FILE            what it signs of each document of a file, one a line, in hexadecimal; null where it refuses
    receipts.py verify FILE KEY           its verifier about a file of receipts
    receipts.py gate KEY NOW TOOL ARGS TOKEN...   its gate about a call under a token, whose ancestors follow
    receipts.py gates KEY NOW TOOL FILE   the same for each line {"token", "args"} of a file
    receipts.py mint KEY NOW GRANT        its issuer at a moment
    receipts.py attenuate KEY NOW TOKEN NARROWING
    receipts.py log KEY FILE              its logger: a file of receipts of several kinds
    receipts.py speed FILE KEY            how long its verifier takes for a file
    receipts.py gate-speed KEY NOW TOOL ARGS TOKEN...   how long its gate takes for a call

KEY is a PEM file. One JSON document is printed.
"""

import hashlib
import json
import sys
import tarfile
import time
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from raucle import capability, provenance


def public(path: str) -> tuple[str, bytes]:
    pem = Path(path).read_bytes()
    return hashlib.sha256(pem).hexdigest()[:16], pem


def issuer(path: str) -> capability.CapabilityIssuer:
    return capability.CapabilityIssuer.load_private_key("desk.example", path)


def verify(file: str, key: str) -> dict:
    kid, pem = public(key)
    report = provenance.ProvenanceVerifier(public_keys={kid: pem}).verify_chain(file)
    return {"valid": report.valid, "count": report.receipt_count, "errors": report.errors[:3]}


def gate(key: str, now: str, tool: str, args: str, *tokens: str) -> dict:
    kid, pem = public(key)
    read = [capability.Capability.from_dict(json.loads(Path(path).read_text())) for path in tokens]
    known = {token.token_id: token for token in read}
    asked = capability.CapabilityGate(trusted_issuers={kid: pem.decode()}, parent_resolver=known.get)
    decision = asked.check(read[0], tool=tool, args=json.loads(args), now=int(now))
    return {"allowed": decision.allowed, "reason": decision.reason}


def mint(key: str, now: str, grant: str) -> dict:
    capability._now = lambda: int(now)
    return issuer(key).mint(**json.loads(grant)).to_dict()


def attenuate(key: str, now: str, token: str, narrowing: str) -> dict:
    capability._now = lambda: int(now)
    parent = capability.Capability.from_dict(json.loads(Path(token).read_text()))
    return issuer(key).attenuate(parent, **json.loads(narrowing)).to_dict()


def log(key: str, file: str) -> dict:
    private = serialization.load_pem_private_key(Path(key).read_bytes(), password=None)
    pem = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    kid = hashlib.sha256(pem).hexdigest()[:16]
    statement = provenance.CapabilityStatement(agent_id="agent:peer", key_id=kid, public_key_pem=pem.decode())
    agent = provenance.AgentIdentity("agent:peer", private, statement)
    logger = provenance.ProvenanceLogger(agent=agent, sink_path=file)
    first = logger.record_user_input(text="Überprüfe 🔑", taint={"external_user", "z"})
    second = logger.record_model_call(parents=[first], model="m", input_text="a", output_text="b")
    third = logger.record_tool_call(parents=[second], tool="t", input_args={"n": 1}, output={"ok": True})
    fourth = logger.record_guardrail_scan(parents=[third], scanned_text="x", ruleset_hash="sha256:0", verdict="CLEAN")
    fifth = logger.record_sanitisation(
        parents=[fourth], removed_taints={"z"}, sanitiser_id="s", input_text="x", output_text="y"
    )
    logger.record_merge(parents=sorted([second, fifth]), output={"done": 1})
    logger.close()
    report = provenance.ProvenanceVerifier(public_keys={kid: pem}).verify_chain(file)
    return {"valid": report.valid, "count": report.receipt_count, "errors": report.errors[:3]}


def canonical(file: str) -> dict:
    """What it writes for each document of a file, one a line; null where it refuses."""
    found = []
    for line in Path(file).read_text().splitlines():
        try:
            found.append(provenance._canonical_json(json.loads(line)).hex())
        except ValueError:
            found.append(None)
    return {"canonical": found}


def vectors() -> dict:
    """The test vectors of the specification, which are in the source distribution only."""
    (archive,) = (Path(sys.prefix) / "sdist").glob("raucle-*.tar.gz")
    with tarfile.open(archive) as source:
        names = [name for name in source.getnames() if name.endswith("provenance/v1/test-vectors.json")]
        found = json.load(source.extractfile(names[0]))
    # As text, since halves of surrogate pairs cannot be handed on otherwise.
    for vector in found["invalid_canonicalization_vectors"]:
        vector["input_text"] = json.dumps(vector.pop("input_object"))
    return found


def gates(key: str, now: str, tool: str, file: str) -> dict:
    kid, pem = public(key)
    asked = capability.CapabilityGate(trusted_issuers={kid: pem.decode()})
    found = []
    for line in Path(file).read_text().splitlines():
        case = json.loads(line)
        token = capability.Capability.from_dict(case["token"])
        found.append(asked.check(token, tool=tool, args=case["args"], now=int(now)).allowed)
    return {"allowed": found}


def speed(file: str, key: str) -> dict:
    kid, pem = public(key)
    verifier = provenance.ProvenanceVerifier(public_keys={kid: pem})
    begin = time.monotonic()
    report = verifier.verify_chain(file)
    return {"seconds": time.monotonic() - begin, "count": report.receipt_count, "valid": report.valid}


def gate_speed(key: str, now: str, tool: str, args: str, *tokens: str) -> dict:
    kid, pem = public(key)
    read = [capability.Capability.from_dict(json.loads(Path(path).read_text())) for path in tokens]
    known = {token.token_id: token for token in read}
    asked = capability.CapabilityGate(trusted_issuers={kid: pem.decode()}, parent_resolver=known.get)
    arguments = json.loads(args)
    times = []
    for _ in range(500):
        begin = time.perf_counter()
        decision = asked.check(read[0], tool=tool, args=arguments, now=int(now))
        times.append(time.perf_counter() - begin)
        if not decision.allowed:
            raise ValueError(decision.reason)
    return {"median_micros": sorted(times)[len(times) // 2] * 1e6}


COMMANDS = {
    "attenuate": attenuate,
    "canonical": canonical,
    "gate": gate,
    "gate-speed": gate_speed,
    "gates": gates,
    "log": log,
    "mint": mint,
    "speed": speed,
    "vectors": vectors,
    "verify": verify,
}


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        print(__doc__, file=sys.stderr)
        return 2
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
