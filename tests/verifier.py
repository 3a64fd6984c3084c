#!/usr/bin/env python3
"""A verifier of caretaker's bundles, written from docs/ledger.md alone. Numbers in comments are that page's sections.

    verifier.py BUNDLE --trust-root FILE|SHA256 [--checkpoint FILE] [--policy FILE] [--json]

Exit code 0 valid, 1 invalid, 2 wrong usage, 3 cannot-verify. Standard library only; `cryptography` is used where it is
installed, for speed alone.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import stat
import sys
import unicodedata
import zlib

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    Ed25519PublicKey = None

VALID, CANNOT, INVALID = range(3)
WORDS = ("valid", "cannot-verify", "invalid")
CODES = (0, 3, 1)
BIGGEST = 2**53 - 1


class Refused(Exception):
    """Something that does not hold, or cannot be checked."""

    def __init__(self, found, rule=None, verdict=INVALID):
        super().__init__(found)
        self.found, self.rule, self.verdict = found, rule, verdict


def require(holds, found, rule=None):
    if not holds:
        raise Refused(found, rule)


def sha256(data):
    return hashlib.sha256(data).digest()


# 2. Strict JSON


class Reader:
    """One JSON document. `parse` gives dict, list, str, int, bool or None."""

    PLAIN = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

    def __init__(self, data, limit):
        require(len(data) <= limit, "JSON that is too long")
        try:
            self.text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise Refused("JSON that is not UTF-8") from None
        self.at = 0

    def parse(self):
        value = self.value(0)
        self.space()
        require(self.at == len(self.text), "something after the JSON document")
        return value

    def peek(self):
        return self.text[self.at : self.at + 1]

    def space(self):
        while self.peek() and self.peek() in " \t\n\r":
            self.at += 1

    def take(self, character):
        require(self.peek() == character, f"no {character} at {self.at}")
        self.at += 1

    def value(self, depth):
        self.space()
        character = self.peek()
        if character in ("{", "["):
            require(depth < 32, "nesting deeper than 32")
            self.at += 1
            return self.members(depth + 1) if character == "{" else self.items(depth + 1)
        if character == '"':
            return self.string()
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        return self.number()

    def members(self, depth):
        found = {}
        self.space()
        if self.peek() == "}":
            self.at += 1
            return found
        while True:
            self.space()
            name = self.string()
            require(name not in found, "a member twice")
            self.space()
            self.take(":")
            found[name] = self.value(depth)
            self.space()
            if self.peek() == "}":
                self.at += 1
                return found
            self.take(",")

    def items(self, depth):
        found = []
        self.space()
        if self.peek() == "]":
            self.at += 1
            return found
        while True:
            found.append(self.value(depth))
            self.space()
            if self.peek() == "]":
                self.at += 1
                return found
            self.take(",")

    def number(self):
        found = re.compile(r"-?[0-9]+").match(self.text, self.at)
        require(found, f"no value at {self.at}")
        self.at = found.end()
        digits = found.group()
        sound = re.fullmatch(r"0|-?[1-9][0-9]{0,15}", digits) and self.peek() not in tuple(".eE")
        require(sound and abs(int(digits)) <= BIGGEST, "a number that is no integer in range")
        return int(digits)

    def string(self):
        self.take('"')
        out = []
        while True:
            character = self.peek()
            require(character >= " ", "a string without end or with a control character")
            self.at += 1
            if character == '"':
                return "".join(out)
            out.append(self.escape() if character == "\\" else character)

    def escape(self):
        kind = self.peek()
        self.at += 1
        if kind != "u":
            require(kind in self.PLAIN, "an unknown escape")
            return self.PLAIN[kind]
        high = self.unit()
        if not 0xD800 <= high < 0xE000:
            return chr(high)
        require(high < 0xDC00 and self.text.startswith("\\u", self.at), "half a surrogate pair")
        self.at += 2
        low = self.unit()
        require(0xDC00 <= low < 0xE000, "half a surrogate pair")
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))

    def unit(self):
        digits = self.text[self.at : self.at + 4]
        require(re.fullmatch(r"[0-9a-fA-F]{4}", digits), "an escape without four digits")
        self.at += 4
        return int(digits, 16)


# 2. Types. A type is a function that refuses a value.


def from_base64(text, length=None):
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise Refused("no base64") from None
    canonical = base64.b64encode(data).decode() == text
    require(canonical and length in (None, len(data)), "base64 in another spelling or of another length")
    return data


def text(value):
    require(isinstance(value, str) and "\0" not in value, "no text")
    require(len(value.encode()) <= 500, "a text of more than 500 bytes")
    require(unicodedata.is_normalized("NFC", value), "a text that is not in normal form C")


def pattern(expression):
    compiled = re.compile(expression)

    def check(value):
        require(isinstance(value, str) and compiled.fullmatch(value), "a string of another form")

    return check


def string(value):
    require(isinstance(value, str), "no string")


def time(value):
    require(isinstance(value, int) and not isinstance(value, bool), "no integer")


def count(value):
    time(value)
    require(value >= 0, "a negative count")


def boolean(value):
    require(isinstance(value, bool), "neither true nor false")


label = pattern(r"[\x21-\x7e]{1,200}")
hash_ = pattern(r"[0-9a-f]{64}")
oid = pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def identifier(kind):
    return pattern(kind + r"-[0-9a-v]{26}")


def words(listed):
    allowed = listed.split()

    def check(value):
        require(isinstance(value, str) and value in allowed, "none of the words")

    return check


def keyid(value):
    require(isinstance(value, str) and re.fullmatch(r"SHA256:[A-Za-z0-9+/]{43}", value), "no key id")
    from_base64(value[7:] + "=", 32)


def key(value):
    require(isinstance(value, str), "no key")
    decode_key(from_base64(value, 32))


def array(kind, most=20):
    def check(value):
        require(isinstance(value, list) and (most is None or len(value) <= most), "no list, or too long")
        for item in value:
            kind(item)

    return check


def mapping(value):
    require(isinstance(value, dict), "no object")
    for item in value.values():
        string(item)


def shape(**members):
    """An object with exactly these members; a name that ends in `_` is optional; `prev` and `previous` may be null."""

    def check(value):
        require(isinstance(value, dict), "no object")
        names = {name.rstrip("_"): (kind, name.endswith("_")) for name, kind in members.items()}
        for name in value:
            require(name in names, f"an unknown member {name[:80]!r}")
        for name, (kind, optional) in names.items():
            if name not in value:
                require(optional, f"no member {name}")
            elif not (name in ("prev", "previous") and value[name] is None):
                kind(value[name])

    return check


def one_of(**members):
    """An object with exactly one of these members."""

    def check(value):
        require(isinstance(value, dict) and len(value) == 1 and set(value) <= set(members), "not one of the members")
        for name, item in value.items():
            members[name](item)

    return check


digest = shape(sha256=hash_)

# 4. Keys and signatures

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def decode_point(data):
    """A point (x, y) in its one encoding."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    require(y < P, "a point in a second spelling")
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P == -u % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    require(v * x * x % P == u, "no point of the curve")
    require(x or not sign, "a point in a second spelling")
    return (x if x & 1 == sign else P - x), y


def add(one, two):
    """In extended coordinates (RFC 8032, 5.1.4)."""
    (x1, y1, z1, t1), (x2, y2, z2, t2) = one, two
    a, b = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def extended(point):
    x, y = point
    return x, y, 1, x * y % P


def multiply(scalar, point):
    found = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            found = add(found, point)
        point = add(point, point)
        scalar >>= 1
    return found


BASE = extended(decode_point(bytes([0x58]) + bytes([0x66]) * 31))


def encode(point):
    x, y, z, _ = point
    inverse = pow(z, -1, P)
    x, y = x * inverse % P, y * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decode_large(data):
    point = decode_point(data)
    eight = multiply(8, extended(point))
    require(encode(eight) != encode((0, 1, 1, 0)), "a point of small order")
    return point


decoded = {}


def decode_key(data):
    if data not in decoded:
        decoded[data] = decode_large(data)
    return decoded[data]


def verifies(public, message, signature):
    try:
        point = decode_key(public)
        require(len(signature) == 64, "a signature of another length")
        require(int.from_bytes(signature[32:], "little") < L, "S is not below L")
        decode_large(signature[:32])
    except Refused:
        return False
    if Ed25519PublicKey is not None and not os.environ.get("VERIFIER_PURE"):
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
            return True
        except (InvalidSignature, ValueError):
            return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    x, y = point
    minus = multiply(k, extended(((P - x) % P, y)))
    found = add(multiply(int.from_bytes(signature[32:], "little"), BASE), minus)
    return encode(found) == signature[:32]


def keyid_of(public):
    wire = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + public
    return "SHA256:" + base64.b64encode(sha256(wire)).decode().rstrip("=")


# 3. Envelopes

EVENT = "application/vnd.in-toto+json"
TRUST_ROOT = "application/vnd.caretaker.trust-root+json"

check_wire = shape(
    payload=string,
    payloadType=string,
    signatures=array(shape(keyid=keyid, sig=string), None),
)


class Envelope:
    def __init__(self, data, most_signatures):
        wire = Reader(data, 65_535).parse()
        check_wire(wire)
        require(1 <= len(wire["signatures"]) <= most_signatures, "another number of signatures")
        self.type = wire["payloadType"]
        self.payload = from_base64(wire["payload"])
        self.signatures = [(one["keyid"], from_base64(one["sig"], 64)) for one in wire["signatures"]]
        signatures = [{"keyid": one["keyid"], "sig": one["sig"]} for one in wire["signatures"]]
        stored = {"payload": wire["payload"], "payloadType": wire["payloadType"], "signatures": signatures}
        require(stored_json(stored) == data, "another serialisation than the stored one")
        kind = self.type.encode()
        self.pae = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(self.payload), self.payload)
        self.digest = sha256(self.pae).hex()

    def signers(self, publics):
        """Those of the keys that signed, each once."""
        return {public for _, signature in self.signatures for public in publics if verifies(public, self.pae, signature)}


def stored_json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# 5. Statements

role = words("proposer policy approver executor")
class_ = words("functional data infrastructure")
method = words("merge squash rebase")
project = shape(uri=text, repository_id=label)
trust_root_reference = shape(version=count, sha256=hash_)
producer = shape(id=text, version=label)
about = dict(incident=identifier("inc"), project=project, role=role, occurred_at=time, producer=producer)
about = dict(about, id=identifier("evt"), trust_root=trust_root_reference)
event_block = shape(**about, seq=count, prev=digest, policy=digest)
change = shape(algorithm=words("caretaker/change-set/v1"), object_format=words("sha1 sha256"), sha256=hash_, count=count)
head = shape(commit=oid, tree=oid)
target = one_of(commit=shape(change=change, head=head), files=shape(sha256=hash_, count=count))
evidence = array(shape(kind=label, sha256=hash_))
KINDS = "code never-started timeout workflow-invalid silent-workflow flaky health unknown"
REASONS = """change-mismatch approval-expired approval-voided signing-failed anchor-failed unlogged-merge drift
    ledger-broken key-revoked base-moved head-moved merge-refused checks-not-green executed-differs not-reproducible
    not-code fix-failed tests-inseparable budget-spent not-representable permission-missing taken-over retries-spent
    other"""
binding = shape(
    repository_id=label, host=label, pull_request=count, base_ref=text, merge_base=oid, head_ref=text, head_commit=oid,
    head_tree=oid, count=count, change=digest, merge_method=method, title=digest, body=digest, expires_at=time,
    sha256=hash_,
)
resource = shape(name_=text, uri_=text, digest_=mapping, mediaType_=text)
item = shape(kind=label, source=text, trust=words("direct quarantined"), sha256=hash_, bytes=count, raw_=digest)


def same_format(*identifiers):
    require(len({len(one) for one in identifiers}) == 1, "object ids of different formats")


def check_target(said):
    if "commit" in said:
        width = {"sha1": 40, "sha256": 64}[said["commit"]["change"]["object_format"]]
        both = said["commit"]["head"].values()
        require(all(len(one) == width for one in both), "head is not of the repository's object format")


def subjects_of_target(said):
    if "files" in said:
        return [subject("files", sha256=said["files"]["sha256"])]
    commit = said["commit"]
    return [subject("change", sha256=commit["change"]["sha256"]), commit_subject("head", **commit["head"])]


def subject(name, **digests):
    return {"name": name, "digest": digests}


def commit_subject(name, commit, tree, **_):
    return subject(name, gitCommit=commit, gitTree=tree)


def proposal_checked(said):
    check_target(said["target"])
    if "session" in said:
        receipts = said["session"]["receipts"]["count"]
        require(receipts > said["session"]["calls"], "fewer receipts than calls and the root")
        if "scores" in said["session"]:
            scores = said["session"]["scores"]["count"]
            require(1 <= scores <= min(receipts - 1, 4096), "another number of scores")
    return subjects_of_target(said["target"])


def decision_checked(said):
    check_target(said["target"])
    denied = said["verdict"] == "deny"
    require(denied or not said["terminal"], "terminal without a denial")
    require(denied or "commit" in said["target"], "files that are not denied")
    require(said["verdict"] != "free" or said["class"] == "functional", "free, but not functional")
    return [subject("proposal", sha256=said["proposal"]["sha256"]), *subjects_of_target(said["target"])]


def approval_checked(said):
    bound, token = said["binding"], said["token"]
    require(token["issued_at"] <= token["consumed_at"] < token["expires_at"], "a link used out of its time")
    late = said["answer"] == "approve" and token["consumed_at"] >= bound["expires_at"]
    require(not late, "an approval after its end")
    same_format(bound["head_commit"], bound["head_tree"], bound["merge_base"])
    return [
        subject("proposal", sha256=said["proposal"]["sha256"]),
        subject("change", sha256=bound["change"]["sha256"]),
        commit_subject("head", bound["head_commit"], bound["head_tree"]),
    ]


def execution_checked(said):
    require(said["by_us"] == ("authority" in said), "authority and by_us do not fit")
    if said["by_us"]:
        require("proposal" in said, "a merge of ours without proposal")
        require(said.get("approved_change") == said["observed_change"], "what landed is not what was approved")
    landed = said["landed"]
    same_format(*landed.values(), said["before"], said["after"])
    return [commit_subject("landed", **landed), subject("change", sha256=said["observed_change"]["sha256"])]


def incident_subject(said):
    return [subject("incident", sha256=sha256(said["event"]["incident"].encode()).hex())]


def gap_checked(said):
    require("reason" not in said or said["evidence"], "a gap with a reason that names nothing")
    return incident_subject(said)


def outcome_checked(said):
    require(said["answer"] == "allow" or "reason" in said, "a refusal without a reason")
    fits = {"allow": FOR_ALLOW + FOR_BOTH, "deny": FOR_DENY + FOR_BOTH}
    require(said["stage"] in fits[said["answer"]].split(), "a check that does not give this answer")
    check_receipt(said)
    receipts = [subject("receipt", sha256=said["receipt"]["sha256"])] if "receipt" in said else []
    return [subject("arguments", sha256=said["arguments"]["sha256"]), *receipts]


def check_receipt(said):
    require("receipt" not in said or said["receipt"]["count"], "a receipt that does not count itself")


def score_checked(said):
    score, soft, hard = said.get("score_micro"), said["threshold_micro"], said["hard_threshold_micro"]
    found = [one for one in (score, soft, hard) if one is not None]
    require(all(-1_000_000 <= one <= 1_000_000 for one in found) and hard <= soft, "no cosines, or crossed thresholds")
    answer = "deny" if score is None or score < hard else "warn" if score < soft else "allow"
    require(said["answer"] == answer, "an answer that does not follow")
    check_receipt(said)
    return [subject(name, sha256=said[name]["sha256"]) for name in ("intent", "action")]


def version_checked(said):
    require("project" in said["event"], "rules of no project")
    require(said["version"] and (said["version"] == 1) == (said["previous"] is None), "version and previous do not fit")
    require(said["previous"] != said["policy"] and said["changed_by"], "the same rules, or nobody's")
    return [subject("policy", sha256=said["policy"]["sha256"])]


def unfreeze_checked(said):
    require("project" in said["event"], "a freeze of no project")
    require("incident" in said or "escalation" not in said, "an escalation of no incident")
    require(said["reason"], "no reason")
    return [subject("project", sha256=sha256(said["event"]["project"]["repository_id"].encode()).hex())]


def break_glass_checked(said):
    bound = said["binding"]
    require("project" in said["event"], "an override for no project")
    require(said["event"]["project"]["repository_id"] == bound["repository_id"], "another repository")
    for names in (said["overrides"], [one["approver"]["principal"] for one in said["people"]]):
        require(names and len(set(names)) == len(names), "nothing or nobody, or one twice")
    require(said["reason"], "no reason")
    require(said["event"]["occurred_at"] < said["expires_at"] <= bound["expires_at"], "another end")
    same_format(bound["head_commit"], bound["head_tree"], bound["merge_base"])
    return [
        subject("proposal", sha256=said["proposal"]["sha256"]),
        subject("change", sha256=bound["change"]["sha256"]),
        commit_subject("head", bound["head_commit"], bound["head_tree"]),
    ]


def enrolment_checked(said):
    withdrawn, credential = said["action"] == "withdraw", said["credential"]
    require(said["principal"] and credential["method"] != "link", "nobody's credential, or a link")
    require(0 <= said["from"] and ("until" not in said or said["from"] < said["until"]), "an end before its begin")
    require(not withdrawn or ("until" not in said and "reason" in said), "a withdrawal with an end or without reason")
    own = said["voucher"].get("credential") == {"sha256": credential["sha256"]}
    require(withdrawn or not own, "a credential that vouches for itself")
    return [subject("credential", sha256=credential["sha256"])]


def any_subjects(_):
    return None


OWN = "urn:caretaker:attestation:%s:v1"
TYPES = {
    OWN % "proposal": ("proposal", "proposer", proposal_checked, shape(
        event=event_block, target=target, base=shape(ref=text, commit=oid), title_=digest, body_=digest,
        failure=shape(kind=words(KINDS), url_=text, evidence_=digest), diagnosis=shape(sha256=hash_, summary=text),
        agent=shape(id=label, model_=text), context_manifest=digest, tests=array(digest), intent_document_=digest,
        class_=class_, session_=shape(
            id=label, policy=digest, tokens=digest, receipts=shape(sha256=hash_, count=count), calls=count, record=digest,
            outcomes=digest, scores_=shape(sha256=hash_, count=count), completion=digest, advisory=boolean))),
    OWN % "policy-decision": ("policy-decision", "policy", decision_checked, shape(**{
        "event": event_block, "proposal": digest, "target": target, "verdict": words("deny approve free"),
        "terminal": boolean, "class": class_, "rules": array(shape(id=text, path_=text, pattern_=text)),
        "reasons": array(text), "opinion_": shape(id=label, model_=text, class_=class_, answer=digest)})),
    OWN % "approval": ("approval", "approver", approval_checked, shape(
        event=event_block, answer=words("approve reject"), binding=binding, request=digest, proposal=digest,
        decision=digest, approver=shape(principal=text), method=words("link github oidc passkey ssh"),
        evidence=evidence, token=shape(sha256=hash_, issued_at=time, expires_at=time, consumed_at=time),
        comment_=text)),
    OWN % "execution": ("execution", "executor", execution_checked, shape(
        event=event_block, execution_id=identifier("exe"), by_us=boolean, proposal_=digest,
        authority_=one_of(approval=digest, decision=digest), method=method, pull_request=count,
        landed=shape(commit=oid, tree=oid, parent=oid), approved_change_=digest, observed_change=digest, before=oid,
        after=oid, checkpoint_=shape(origin=text, size=count, root=hash_))),
    OWN % "escalation": ("escalation", "executor", incident_subject, shape(
        event=event_block, reason=words(REASONS), blocks=boolean, expected_=digest, observed_=digest, detail_=text,
        proposal_=digest, evidence=evidence)),
    OWN % "gap": ("gap", "executor", gap_checked, shape(
        event=event_block, reason_=words("lost retention"), detail=text,
        evidence=array(shape(kind=label, sha256=hash_, signed_as_=hash_)))),
    OWN % "context-manifest": ("context-manifest", "proposer", any_subjects, shape(
        document=shape(**about), items=array(item), count=count, all_=digest, prompt_=digest)),
    "https://in-toto.io/attestation/test-result/v0.1": ("test-result", "proposer", any_subjects, shape(
        result=words("PASSED WARNED FAILED"), configuration=array(resource), url_=text, passedTests_=array(text),
        warnedTests_=array(text), failedTests_=array(text))),
}

FOR_ALLOW = "classifier-approve always-allow nothing-against"
FOR_BOTH = " session person completion "
FOR_DENY = "self-protection capability-token permission-profile path-policy shell deny-prompts alignment classifier-deny"
call = dict(document=shape(**about), session=label, call=count, receipt_=shape(sha256=hash_, count=count), reason_=text)
organisation = {name: kind for name, kind in about.items() if name not in ("incident", "project")}
organisation = dict(event=shape(project_=project, **organisation))
person = dict(method=words("link github oidc passkey ssh"), evidence=evidence)
approver = shape(principal=text)
TYPES |= {
    OWN % "gate-outcome": ("gate-outcome", "policy", outcome_checked, shape(
        **call, door=words("loop hook library"), advisory=boolean, tool=text, arguments=digest,
        answer=words("allow deny"), stage=words(FOR_ALLOW + FOR_BOTH + FOR_DENY), policy=digest, token_=digest)),
    OWN % "intent-score": ("intent-score", "policy", score_checked, shape(
        **call, intent=digest, action=digest, score_micro_=time, threshold_micro=time, hard_threshold_micro=time,
        embedder=shape(id=label, model=text, dimensions=count, weights_=digest), answer=words("allow warn deny"))),
    OWN % "policy-version": ("policy-version", "policy", version_checked, shape(
        **organisation, version=count, policy=digest, bytes=count, previous=digest, intent_document_=digest,
        changed_by=text)),
    OWN % "unfreeze": ("unfreeze", "approver", unfreeze_checked, shape(
        **organisation, **person, frozen_because=text, incident_=identifier("inc"), escalation_=digest, person=approver,
        reason=text)),
    OWN % "break-glass": ("break-glass", "approver", break_glass_checked, shape(
        **organisation, incident=identifier("inc"), overrides=array(words("denial checks anchor freeze")),
        binding=binding, proposal=digest, decision=digest, people=array(shape(**person, approver=approver)),
        reason=text, expires_at=time)),
    OWN % "enrolment": ("enrolment", "approver", enrolment_checked, shape(**{
        **organisation, "action": words("enrol withdraw"), "principal": text, "from": time, "until_": time,
        "credential": shape(method=person["method"], id=text, sha256=hash_, algorithm_=label),
        "voucher": one_of(**{"root-key": keyid, "credential": digest}), "evidence": evidence, "reason_": text})),
}
CHAIN = ("proposal", "policy-decision", "approval", "execution", "escalation", "gap")


class Statement:
    def __init__(self, payload):
        said = Reader(payload, 46_000).parse()
        require(isinstance(said, dict) and isinstance(said.get("predicateType"), str), "no statement")
        require(said["predicateType"] in TYPES, "a statement of an unknown type")
        self.kind, self.role, checked, predicate = TYPES[said["predicateType"]]
        shape(
            _type=words("https://in-toto.io/Statement/v1"), subject=array(shape(name=string, digest=mapping), None),
            predicateType=string, predicate=predicate,
        )(said)
        self.said = said["predicate"]
        self.event = self.said.get("event") if self.kind in CHAIN else None
        self.block = self.said.get("event") or self.said.get("document")
        if self.block:
            require(self.block["role"] == self.role, "a role that does not sign this type")
            require(self.block["occurred_at"] >= 0, "a time before 1970")
        if self.event:
            require((self.event["seq"] == 0) == (self.event["prev"] is None), "prev and seq do not fit")
        expected = checked(self.said)
        if expected is None:
            check_free_subjects(said["subject"])
        else:
            require(said["subject"] == expected, "subjects that do not follow from the predicate")


def check_free_subjects(subjects):
    require(1 <= len(subjects) <= 20, "another number of subjects")
    kinds = {"sha256": hash_, "gitCommit": oid, "gitTree": oid}
    for one in subjects:
        require(one["digest"] and set(one["digest"]) <= set(kinds), "a subject by another digest")
        for algorithm, value in one["digest"].items():
            kinds[algorithm](value)


# 6. Trust roots

revocation = shape(at=time, at_index_=count, compromised_since_=time, reason=text)
key_members = dict(keyid=keyid, alg=words("ed25519"), public=key)
role_key = shape(**key_members, not_before=time, not_after_=time, from_index_=count, until_index_=count, revoked_=revocation)
side_key = shape(**key_members, use=label, not_before_=time, not_after_=time, revoked_=revocation)
role_keys = array(role_key)
ROLES = ("proposer", "policy", "approver", "executor")
root_document = shape(
    v=count, org=label, version=count, prev=digest, issued_at=time, expires_at=time, threshold=count,
    root_keys=array(shape(**key_members)), roles=shape(**{name: role_keys for name in ROLES}),
    side_keys_=array(side_key), witnesses_=array(text),
    timestamp_authorities_=array(shape(uri=text, chain=digest, not_before=time, not_after=time)),
)


class TrustRoot:
    def __init__(self, data):
        self.envelope = Envelope(data, 16)
        said = Reader(self.envelope.payload, 46_000).parse()
        root_document(said)
        self.said, self.digest, self.version = said, self.envelope.digest, said["version"]
        self.check()
        require(self.envelope.type == TRUST_ROOT, "an envelope of another type")
        require(self.signed(self.envelope), "a trust root that its own keys did not sign")

    def check(self):
        said = self.said
        require(said["v"] == 1, "another format of trust roots")
        require(self.version >= 1 and (self.version == 1) == (said["prev"] is None), "version and prev do not fit")
        require(said["issued_at"] < said["expires_at"], "a trust root without time")
        require(1 <= said["threshold"] <= len(said["root_keys"]), "a threshold that means nothing")
        require(all(said["roles"].values()), "a role without key")
        side = said.get("side_keys", [])
        ranged = [one for keys in said["roles"].values() for one in keys]
        every = said["root_keys"] + ranged + side
        for one in every:
            require(keyid_of(base64.b64decode(one["public"])) == one["keyid"], "a key id of another key")
        require(len({one["public"] for one in every}) == len(every), "a key twice")
        for one in ranged + side:
            if "not_before" in one and "not_after" in one:
                require(one["not_before"] < one["not_after"], "a key that never counts")
        for one in ranged:
            if "until_index" in one:
                require(one.get("from_index", 0) < one["until_index"], "a key that never counts")

    def signed(self, envelope):
        publics = [base64.b64decode(one["public"]) for one in self.said["root_keys"]]
        return len(envelope.signers(publics)) >= self.said["threshold"]

    def uses(self):
        """Every key with what it is for."""
        roles = [(name, one) for name in ROLES for one in self.said["roles"][name]]
        side = [(one["use"], one) for one in self.said.get("side_keys", [])]
        every = [("root", one) for one in self.said["root_keys"]] + roles + side
        return [(use, one["keyid"]) for use, one in every]

    def role_key(self, keyid_):
        for name in ROLES:
            for one in self.said["roles"][name]:
                if one["keyid"] == keyid_:
                    return name, one
        return None


class History:
    """6.3: versions that follow from the pinned one, ascending."""

    def __init__(self, pinned):
        self.versions = [pinned]

    def extend(self, root):
        older = root.version < self.versions[0].version
        one, two = (root, self.versions[0]) if older else (self.versions[-1], root)
        require(one.said["org"] == two.said["org"], "a trust root of another organisation")
        require(one.version + 1 == two.version, "trust roots with a gap")
        require(two.said["prev"]["sha256"] == one.digest, "a trust root that names another predecessor")
        require(older or one.signed(two.envelope), "a trust root that the old keys did not sign")
        self.versions = [root, *self.versions] if older else [*self.versions, root]
        known = {}
        for version in self.versions:
            for use, keyid_ in version.uses():
                require(known.setdefault(keyid_, use) == use, "a key that changes its use")

    def role_key(self, keyid_):
        """The newest entry."""
        found = (version.role_key(keyid_) for version in reversed(self.versions))
        return next((one for one in found if one), None)

    def check_key(self, name, keyid_, block, index):
        """6.4. The index is None while the event is not proven to be in the log."""
        reference, moment = block["trust_root"], block["occurred_at"]
        numbered = [one for one in self.versions if one.version == reference["version"]]
        if not numbered:
            raise Refused("a trust root that is not held", "trust-root", CANNOT)
        require(numbered[0].digest == reference["sha256"], "another trust root of that number", "trust-root")
        found = numbered[0].role_key(keyid_)
        require(found and found[0] == name, "a key that this version does not list", "key")
        for entry in (found[1], self.role_key(keyid_)[1]):
            inside = entry["not_before"] <= moment and ("not_after" not in entry or moment < entry["not_after"])
            require(inside, "a moment at which the key does not count", "key-window")
            inside = index is None or entry.get("from_index", 0) <= index < entry.get("until_index", 2**64)
            require(inside, "a place in the log where the key does not count", "key-window")
        for version in self.versions:
            found = version.role_key(keyid_)
            if found and "revoked" in found[1]:
                revoked = found[1]["revoked"]
                if index is not None and "at_index" in revoked:
                    require(index < revoked["at_index"], "a revoked key", "key-revoked")
                    continue
                start = min(revoked["at"], revoked.get("compromised_since", revoked["at"]))
                require(moment < start, "a revoked key", "key-revoked")

    def log_keys(self):
        """6.5: the log's name and keys."""
        origin = "caretaker/" + self.versions[-1].said["org"]
        side = self.versions[-1].said.get("side_keys", [])
        publics = {base64.b64decode(one["public"]) for one in side if one["use"] == "log" and "revoked" not in one}
        if not publics or not is_note_name(origin):
            raise Refused("no key of the log", "log", CANNOT)
        return origin, publics


# 8. The story


class Story:
    def __init__(self, refuse):
        self.refuse = refuse
        self.proposals, self.newest, self.decisions, self.answers, self.closed = {}, None, {}, {}, None
        self.fitting, self.unread = True, set()

    def expect(self, holds, rule, found, verdict=INVALID):
        if not holds:
            self.refuse(rule, found, verdict)
            self.fitting = False
        return holds

    def refers(self, held, name, found):
        """To something earlier in the chain, which may be there and only not be verifiable."""
        return self.expect(name in held, "reference", found, CANNOT if name in self.unread else INVALID)

    def take(self, name, kind, said):
        if self.closed:
            self.expect(kind in self.closed, "order", f"{kind} after the end")
        self.fitting = True
        getattr(self, kind.replace("-", "_"))(name, said)

    def known(self, said):
        return self.refers(self.proposals, said["proposal"]["sha256"], "an unknown proposal")

    def known_newest(self, said):
        if self.known(said):
            self.expect(said["proposal"]["sha256"] == self.newest, "order", "a proposal that is not the newest")

    def proposal(self, name, said):
        self.proposals[name] = {"said": said, "decided": False, "last": None}
        self.newest = name

    def policy_decision(self, name, said):
        self.known_newest(said)
        proposed = self.proposals.get(said["proposal"]["sha256"])
        if proposed:
            self.expect(not proposed["decided"], "order", "a second decision")
            proposed["decided"] = True
            self.expect(said["target"] == proposed["said"]["target"], "change", "another target")
        if said["terminal"]:
            self.closed = {"gap"}
        self.decisions[name] = {"said": said, "void": not self.fitting}

    def approval(self, name, said):
        self.known_newest(said)
        if self.refers(self.decisions, said["decision"]["sha256"], "an unknown decision"):
            decided = self.decisions[said["decision"]["sha256"]]
            same = decided["said"]["proposal"] == said["proposal"]
            if self.expect(same, "reference", "a decision about another proposal"):
                self.expect(decided["said"]["verdict"] == "approve", "order", "a decision that asks for no approval")
        proposed = self.proposals.get(said["proposal"]["sha256"])
        if proposed:
            last = self.answers.get(proposed["last"])
            self.expect(not last or last["said"]["answer"] == "approve", "order", "an answer after a rejection")
            self.expect(fits(proposed["said"], said["binding"]), "change", "a binding of another change")
            proposed["last"] = name
        same = said["binding"]["repository_id"] == said["event"]["project"]["repository_id"]
        self.expect(same, "project", "a binding of another repository")
        self.answers[name] = {"said": said, "void": not self.fitting}

    def execution(self, _, said):
        if "proposal" in said:
            self.known(said)
            if said["by_us"]:
                self.known_newest(said)
            proposed = self.proposals.get(said["proposal"]["sha256"])
            commit = proposed and proposed["said"]["target"].get("commit")
            if "approved_change" in said:
                same = commit and commit["change"]["sha256"] == said["approved_change"]["sha256"]
                self.expect(same, "change", "another change than proposed")
        authority = said.get("authority", {})
        for kind, held in (("approval", self.answers), ("decision", self.decisions)):
            if kind in authority:
                self.authorised(kind, authority[kind]["sha256"], held, said)
        self.closed = {"gap", "escalation"}

    def authorised(self, kind, name, held, said):
        if not self.refers(held, name, f"an unknown {kind}"):
            return
        found = held[name]
        self.expect(found["said"]["proposal"] == said.get("proposal"), "reference", "an authority for another proposal")
        self.expect(not found["void"], "order", "an authority that is void")
        if kind == "decision":
            self.expect(found["said"]["verdict"] == "free", "order", "a decision that is not free")
            return
        self.expect(found["said"]["answer"] == "approve", "order", "a rejection")
        proposed = self.proposals.get(found["said"]["proposal"]["sha256"])
        self.expect(proposed and proposed["last"] == name, "order", "not the last answer")
        bound = found["said"]["binding"]
        same = bound["change"] == said["observed_change"]
        same = same and (bound["merge_method"], bound["pull_request"]) == (said["method"], said["pull_request"])
        self.expect(same, "change", "another change than bound")

    def escalation(self, _, said):
        if "proposal" in said:
            self.known(said)
        if said["blocks"]:
            for one in self.answers.values():
                one["void"] = True
            for one in self.decisions.values():
                one["void"] |= one["said"]["verdict"] == "free"

    def gap(self, _, said):
        pass


def fits(proposed, bound):
    commit = proposed["target"].get("commit")
    if not commit:
        return False
    found = (bound["change"]["sha256"], bound["count"], bound["head_commit"], bound["head_tree"], bound["base_ref"])
    said = commit["change"]
    expected = (said["sha256"], said["count"], commit["head"]["commit"], commit["head"]["tree"], proposed["base"]["ref"])
    return found == expected and all(proposed.get(name, bound[name]) == bound[name] for name in ("title", "body"))


# 7. Each event


class Verification:
    def __init__(self, history):
        self.history = history
        self.verdict, self.events, self.failures, self.gaps = VALID, [], [], []
        self.incident = self.project = None
        self.ending = "open"
        self.ids, self.before = set(), None
        self.story = Story(self.fail)

    def fail(self, rule, found, verdict=INVALID, seq=None):
        """Of the line under way, or of a place, or (-1) of the whole."""
        place = len(self.events) - 1 if seq is None else seq
        if 0 <= place < len(self.events):
            event = self.events[place]
            event["verdict"] = max(event["verdict"], verdict)
            event["reason"] = event["reason"] or f"{rule}: {found}"
        else:
            place = len(self.events)
        self.verdict = max(self.verdict, verdict)
        self.failures.append({"seq": place, "rule": rule, "expected": "what docs/ledger.md says", "found": found})

    def take(self, line, index):
        self.events.append({"seq": len(self.events), "type": None, "role": None, "keyid": None, "verdict": VALID, "reason": None})
        ending, self.ending = self.ending, "open"
        before, self.before = self.before, None
        try:
            envelope = step("envelope", Envelope, line, 1)
            self.before = envelope.digest
            statement = self.authentic(envelope, index)
        except Refused as refused:
            if refused.verdict == CANNOT:
                self.story.unread.add(self.before)
            self.fail(refused.rule, refused.found, refused.verdict)
            return
        self.check_place(statement.event, before)
        self.story.take(envelope.digest, statement.kind, statement.said)
        if statement.kind == "gap":
            self.gaps.append(len(self.events) - 1)
            self.ending = ending
        if statement.kind == "execution" or statement.said.get("terminal"):
            self.ending = "finished"

    def authentic(self, envelope, index):
        (keyid_, signature), = envelope.signatures
        event = self.events[-1]
        event["keyid"] = keyid_
        found = self.history.role_key(keyid_)
        require(found, "a key that is no role key", "key")
        name, entry = found
        signed = envelope.type == EVENT and verifies(base64.b64decode(entry["public"]), envelope.pae, signature)
        require(signed, "another signature or type", "signature")
        statement = step("statement", Statement, envelope.payload)
        require(statement.role == name, f"a {statement.kind} of the {name}", "role")
        if statement.block:
            self.history.check_key(name, keyid_, statement.block, index)
        event["type"], event["role"] = statement.kind, name
        require(statement.event, f"a {statement.kind} in a chain", "kind")
        return statement

    def check_place(self, block, before):
        place = len(self.events) - 1
        if block["seq"] != place:
            self.fail("seq", str(block["seq"]))
        found = block["prev"] and block["prev"]["sha256"]
        if place and before is None:
            self.fail("prev", "nothing before that can be read", CANNOT)
        elif found != (before if place else None):
            self.fail("prev", str(found))
        self.incident = self.incident or block["incident"]
        self.project = self.project or block["project"]
        if block["incident"] != self.incident:
            self.fail("incident", block["incident"])
        if block["project"] != self.project:
            self.fail("project", "another project")
        if block["id"] in self.ids:
            self.fail("event-id", block["id"])
        self.ids.add(block["id"])


def step(rule, make, *arguments):
    try:
        return make(*arguments)
    except Refused as refused:
        refused.rule = rule
        raise


# 9.1 The file


def half(number):
    return number.to_bytes(2, "little")


def word(number):
    return number.to_bytes(4, "little")


def read_archive(data):
    require(len(data) >= 22, "too short for a zip file")
    end = data[-22:]
    number = int.from_bytes(end[10:12], "little")
    length, start = int.from_bytes(end[12:16], "little"), int.from_bytes(end[16:20], "little")
    expected = word(0x06054B50) + half(0) * 2 + half(number) * 2 + word(length) + word(start) + half(0)
    require(end == expected and start + length + 22 == len(data) and number <= 20_000, "another end of a zip file")
    members, at, entry, last = {}, 0, start, b""
    for _ in range(number):
        size = int.from_bytes(data[entry + 24 : entry + 28], "little")
        name_length = int.from_bytes(data[entry + 28 : entry + 30], "little")
        name = data[entry + 46 : entry + 46 + name_length]
        content = data[at + 30 + name_length : at + 30 + name_length + size]
        common = half(10) + half(0) * 3 + half(0x0021) + word(zlib.crc32(content)) + word(size) * 2 + half(len(name)) + half(0)
        local = word(0x04034B50) + common + name + content
        central = word(0x02014B50) + half(0x030A) + common + half(0) * 3 + word(0x81A40000) + word(at) + name
        sound = re.fullmatch(rb"[a-z0-9._/-]{1,128}", name)
        sound = sound and all(part.strip(b".") for part in name.split(b"/"))
        require(sound and last < name, "another name or order of members")
        require(len(name) == name_length and len(content) == size, "members that are cut off")
        require(data[at : at + len(local)] == local, "another header of a member")
        require(data[entry : entry + len(central)] == central, "another entry of the directory")
        members[name.decode()], last = content, name
        at, entry = at + len(local), entry + len(central)
    require(at == start and entry == start + length, "bytes outside of the members")
    return members


# 9.2 to 9.5


def number_below(found):
    return re.fullmatch(r"0|[1-9][0-9]{0,19}", found) is not None and int(found) < 2**64


def is_member(name, events):
    if name in ("format", "events.jsonl"):
        return True
    forms = r"root/([0-9]+)\.json|proofs/([0-9]+)\.tlog-proof|consistency/([0-9]+)-([0-9]+)|evidence/[0-9a-f]{64}"
    stamps = r"timestamps/([0-9]+)/(?:checkpoint|[a-z0-9-]{1,60}\.tsr)"
    found = re.fullmatch(f"{forms}|{stamps}", name)
    if not found:
        return False
    proof = found.groups()[1]
    numbers = [one for one in found.groups() if one is not None]
    return all(map(number_below, numbers)) and (proof is None or int(proof) < events)


WHITE = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}


def is_note_name(name):
    bad = any(one == "+" or ord(one) in WHITE or ord(one) < 0x20 or 0x7F <= ord(one) < 0xA0 for one in name)
    return 1 <= len(name.encode()) <= 255 and not bad


def utf8(data, most):
    require(len(data) <= most, "a text that is too long")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("a text that is not UTF-8") from None


class Checkpoint:
    """9.3: a signed note with the text of a checkpoint."""

    def __init__(self, data):
        note = utf8(data, 65_536)
        require(not any(one < " " and one != "\n" for one in note), "a control character")
        before, empty, after = note.rpartition("\n\n")
        require(empty and after.endswith("\n"), "no signed note")
        self.text = before + "\n"
        lines = after[:-1].split("\n")
        require(len(lines) <= 100, "more than 100 signature lines")
        self.signatures = [signature_line(line) for line in lines]
        require(len(self.text.encode()) <= 16_384, "a checkpoint that is too long")
        parts = self.text[:-1].split("\n")
        require(len(parts) >= 3 and all(parts[3:]), "no checkpoint")
        self.origin, size, root = parts[:3]
        require(is_note_name(self.origin), "no name of a log")
        require(re.fullmatch(r"0|[1-9][0-9]{0,18}", size) and int(size) < 2**63, "no number of leaves")
        self.size, self.root = int(size), from_base64(root, 32)
        require(self.size or self.root == sha256(b""), "another root over nothing")

    def check(self, origin, publics):
        require(self.origin == origin, "a checkpoint of another log")
        hashes = [sha256(origin.encode() + b"\n\x01" + public)[:4] for public in publics]
        signed = False
        for name, key_hash, signature in self.signatures:
            same = [public for public, one in zip(publics, hashes) if name == origin and one == key_hash]
            require(len(same) <= 1, "two log keys with one hash")
            for public in same:
                good = len(signature) == 64 and verifies(public, self.text.encode(), signature)
                require(good, "a signature line of the log that does not verify")
                signed = True
        require(signed, "a checkpoint that no key of the log signed")


def signature_line(line):
    parts = line.split(" ", 2)
    require(len(parts) == 3 and parts[0] == "\u2014" and is_note_name(parts[1]), "no signature line")
    data = from_base64(parts[2])
    require(len(data) > 4, "no signature")
    return parts[1], data[:4], data[4:]


def node(left, right):
    return sha256(b"\x01" + left + right)


def check_inclusion(leaf, index, path, size, root):
    """RFC 9162, 2.1.3.2."""
    require(index < size, "an index beyond the tree")
    place, last, found = index, size - 1, leaf
    for sibling in path:
        require(last, "too many hashes")
        if place & 1 or place == last:
            found = node(sibling, found)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            found = node(found, sibling)
        place, last = place >> 1, last >> 1
    require(last == 0 and found == root, "a proof of something else")


def check_consistency(first, second, path):
    """RFC 9162, 2.1.4.2, for different sizes."""
    (size1, root1), (size2, root2) = first, second
    require(0 < size1 < size2 and path, "sizes that prove nothing")
    if size1 & (size1 - 1) == 0:
        path = [root1, *path]
    place, last = size1 - 1, size2 - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = path[0]
    for sibling in path[1:]:
        require(last, "too many hashes")
        if place & 1 or place == last:
            old, new = node(sibling, old), node(sibling, new)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            new = node(new, sibling)
        place, last = place >> 1, last >> 1
    require(last == 0 and old == root1 and new == root2, "a proof of something else")


class Proof:
    def __init__(self, data):
        rest = utf8(data, 98_304)

        def line():
            nonlocal rest
            found, end, rest = rest.partition("\n")
            require(end, "a proof that is cut off")
            return found

        require(line() == "c2sp.org/tlog-proof@v1", "no proof")
        found = line()
        if found.startswith("extra "):
            require(1 <= len(from_base64(found[6:])) <= 16_384, "extra data of another length")
            found = line()
        require(found.startswith("index ") and number_below(found[6:]), "no index")
        self.index, self.path = int(found[6:]), []
        while found := line():
            require(len(self.path) < 63, "more than 63 hashes")
            self.path.append(from_base64(found, 32))
        self.checkpoint = Checkpoint(rest.encode())


def proven(history, members, lines):
    """Of each line its proof, or why there is none."""
    try:
        origin, publics = history.log_keys()
    except Refused as refused:
        return refused
    return [proof_of(members.get(f"proofs/{place}.tlog-proof"), line, origin, publics) for place, line in enumerate(lines)]


def proof_of(data, line, origin, publics):
    if data is None:
        return Refused("no proof", "log", CANNOT)
    try:
        proof = Proof(data)
        found = proof.checkpoint
        found.check(origin, publics)
        check_inclusion(sha256(b"\0" + line), proof.index, proof.path, found.size, found.root)
    except Refused as refused:
        return Refused(refused.found, "log")
    return proof


def check_log(judged, proofs):
    if isinstance(proofs, Refused):
        judged.fail("log", proofs.found, CANNOT, -1)
        return None
    checkpoint, before = None, -1
    for place, proof in enumerate(proofs):
        if isinstance(proof, Refused):
            judged.fail("log", proof.found, proof.verdict, place)
            continue
        if proof.index <= before:
            judged.fail("log", "a place before the event before", INVALID, place)
        before, found = proof.index, proof.checkpoint
        checkpoint = checkpoint or found
        if (found.size, found.root) != (checkpoint.size, checkpoint.root):
            judged.fail("log", "another checkpoint", INVALID, place)
    return checkpoint


# 9.6 Policies of auditors


class Policy:
    """Logs, witnesses and groups; who has to have cosigned. Names are bytes."""

    def __init__(self, data):
        require(len(data) <= 65_536 and data.endswith(b"\n"), "a policy that is too long or cut off")
        require(not any(one < 0x20 and one not in b"\t\n" or one == 0x7F for one in data), "a control character")
        self.logs, self.witnesses, self.groups, self.quorum = [], [], [], None
        self.names, self.grouped = {}, set()
        for line in data[:-1].split(b"\n"):
            items = re.split(rb"[ \t]+", line.strip(b" \t"))
            if items[0] and not items[0].startswith(b"#"):
                self.take(*items)
        require(self.quorum, "no quorum")

    def take(self, word, *items):
        if word == b"log" and len(items) in (1, 2):
            self.logs.append(self.key(items[0], 1, self.logs))
        elif word == b"witness" and len(items) in (2, 3):
            key = self.key(items[1], 4, self.witnesses)
            self.name(items[0], ("witness", len(self.witnesses)))
            self.witnesses.append(key)
        elif word == b"group" and len(items) > 2:
            self.group(*items)
        else:
            require(word == b"quorum" and len(items) == 1 and not self.quorum, "a line of another form")
            require(items[0] == b"none" or items[0] in self.names, "an unknown name")
            self.quorum = self.names.get(items[0], "none")

    def key(self, item, kind, same):
        """Name, id and public key of NAME+ID+KEY."""
        require(len(item) <= 512 and len(same) < 64, "a key that is too long, or too many")
        parts = utf8(item, 512).split("+", 2)
        require(len(parts) == 3 and is_note_name(parts[0]), "no key")
        data = from_base64(parts[2])
        require(len(data) == 33 and data[0] == kind, "a key of another kind")
        decode_key(data[1:])
        name_hash = sha256(parts[0].encode() + b"\n" + data)[:4]
        require(name_hash.hex() == parts[1], "another id than the key's")
        require(data[1:] not in [one[2] for one in self.logs + self.witnesses], "a key twice")
        return parts[0], name_hash, data[1:]

    def name(self, name, what):
        require(name != b"none" and name not in self.names, "a name twice")
        self.names[name] = what

    def group(self, name, threshold, *members):
        require(len(self.groups) < 64, "too many groups")
        for one in members:
            require(one in self.names and one not in self.grouped, "a member that is unknown or in a group")
            self.grouped.add(one)
        number = {b"any": b"1", b"all": b"%d" % len(members)}.get(threshold, threshold)
        require(re.fullmatch(rb"[1-9][0-9]{0,2}", number) and int(number) <= len(members), "another threshold")
        members = [self.names[one] for one in members]
        self.name(name, ("group", len(self.groups)))
        self.groups.append((int(number), members))

    def judge(self, checkpoint):
        """The cosignatures that count."""
        logs = [one for one in self.logs if one[0] == checkpoint.origin]
        seen, signed = {}, False
        for name, key_hash, signature in checkpoint.signatures:
            same = [one for one in logs + self.witnesses if one[:2] == (name, key_hash)]
            if len(same) > 1:
                raise Refused("two keys with one hash", "witness", CANNOT)
            for one in same:
                if one in logs:
                    good = len(signature) == 64 and verifies(one[2], checkpoint.text.encode(), signature)
                    signed = True
                else:
                    moment = int.from_bytes(signature[:8], "big")
                    text = f"cosignature/v1\ntime {moment}\n{checkpoint.text}".encode()
                    good = len(signature) == 72 and moment < 2**63 and verifies(one[2], text, signature[8:])
                    seen[one] = max(moment, seen.get(one, 0))
                require(good, "a line of a known key that does not verify", "witness")
        if self.logs and not signed:
            raise Refused("no listed key of the log signed", "witness", CANNOT)
        if not self.met(seen):
            raise Refused("the quorum is not met", "witness", CANNOT)
        return [{"witness": one[0], "seconds": moment} for one, moment in seen.items()]

    def met(self, seen):
        groups = []

        def holds(what):
            kind, index = what
            return groups[index] if kind == "group" else self.witnesses[index] in seen

        for threshold, members in self.groups:
            groups.append(sum(map(holds, members)) >= threshold)
        return self.quorum == "none" or holds(self.quorum)


def check_witnesses(judged, proofs, policy):
    """The checkpoint of each proof that holds; what of the first is told."""
    first = None
    for place, proof in enumerate([] if isinstance(proofs, Refused) else proofs):
        if isinstance(proof, Refused):
            continue
        cosigned = []
        try:
            cosigned = policy.judge(proof.checkpoint)
        except Refused as refused:
            judged.fail("witness", refused.found, refused.verdict, place)
        first = cosigned if first is None else first
    return first or []


def hashes(data):
    """A line each, and nothing else."""
    lines = utf8(data, len(data)).split("\n")
    require(lines.pop() == "", "no line break after the last hash")
    require(len(lines) <= 63, "more than 63 hashes")
    return [from_base64(line, 32) for line in lines]


def check_seen(judged, members, checkpoint, seen):
    try:
        seen.check(*judged.history.log_keys())
    except Refused as refused:
        judged.fail("checkpoint", refused.found, CANNOT, -1)
        return
    older, newer = sorted(((seen.size, seen.root), (checkpoint.size, checkpoint.root)))
    if older[0] == newer[0]:
        if older != newer:
            judged.fail("checkpoint", "two histories", INVALID, -1)
        return
    data = members.get(f"consistency/{older[0]}-{newer[0]}")
    if data is None:
        judged.fail("checkpoint", "no consistency proof", CANNOT, -1)
        return
    try:
        check_consistency(older, newer, hashes(data))
    except Refused as refused:
        judged.fail("checkpoint", refused.found, INVALID, -1)


def check_timestamps(judged, members, checkpoint):
    """9.7, without the timestamps themselves: no X.509 here."""
    folders = {}
    for name, data in members.items():
        if name.startswith("timestamps/") and is_member(name, 0):
            _, size, file = name.split("/")
            folders.setdefault(int(size), {})[file] = data
    brought = 0
    for size, files in folders.items():
        try:
            check_stamped(judged, members, checkpoint, size, files.pop("checkpoint", b""))
        except Refused as refused:
            judged.fail("timestamp", refused.found, refused.verdict, -1)
            continue
        if not files:
            judged.fail("timestamp", f"no timestamp of {size} leaves", INVALID, -1)
        brought += len(files)
    if brought > 64:
        judged.fail("timestamp", "more than 64 timestamps", INVALID, -1)


def check_stamped(judged, members, checkpoint, size, data):
    stamped = Checkpoint(data)
    own = [name == stamped.origin and len(signature) == 64 for name, _, signature in stamped.signatures]
    require(all(own), "lines beside the log's own")
    stamped.check(*judged.history.log_keys())
    require(stamped.size == size, "a checkpoint under another number")
    older, newer = sorted(((stamped.size, stamped.root), (checkpoint.size, checkpoint.root)))
    if older[0] == newer[0]:
        require(older == newer, "two histories")
        return
    data = members.get(f"consistency/{older[0]}-{newer[0]}")
    if data is None:
        raise Refused("no consistency proof", "timestamp", CANNOT)
    check_consistency(older, newer, hashes(data))


# 1. All of it


def read_file(path, most):
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Refused("no ordinary file", "bundle", CANNOT)
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise Refused(str(error), "bundle", CANNOT) from None
    if len(data) > most:
        raise Refused("a file that is too long", "bundle", CANNOT)
    return data


def unreadable(make, *arguments):
    """What is not as it should be here only means that nothing can be verified."""
    try:
        return make(*arguments)
    except Refused as refused:
        raise Refused(refused.found, "bundle", CANNOT) from None


def history_of(members, pin):
    brought = {}
    for name in sorted(members):
        if name.startswith("root/"):
            require(len(brought) < 64, "more than 64 trust roots", "bundle")
            root = TrustRoot(members[name])
            require(name == f"root/{root.version}.json", f"version {root.version} as {name}", "bundle")
            brought[root.version] = root
    if isinstance(pin, str):
        pin = next((root for root in brought.values() if root.digest == pin), None)
        if pin is None:
            raise Refused("the pinned trust root is not in the bundle", "bundle", CANNOT)
    swapped = brought.get(pin.version, pin).digest != pin.digest
    require(not swapped, "another trust root of the pinned number", "bundle")
    history = History(pin)
    for version in sorted((one for one in brought if one < pin.version), reverse=True):
        history.extend(brought[version])
    for version in sorted(one for one in brought if one > pin.version):
        history.extend(brought[version])
    return history


def verify(bundle, trust_root, checkpoint=None, policy=None):
    hexadecimal = trust_root.removeprefix("sha256:")
    if re.fullmatch(r"[0-9a-f]{64}", hexadecimal):
        pin = hexadecimal
    else:
        pin = unreadable(TrustRoot, read_file(trust_root, 65_535))
    seen = checkpoint and unreadable(Checkpoint, read_file(checkpoint, 65_536))
    policy = policy and unreadable(Policy, read_file(policy, 65_536))
    members = read_archive(read_file(bundle, 256 << 20))
    if members.get("format") != b"caretaker-bundle/v1\n":
        raise Refused("another format", "bundle", CANNOT)
    judged = Verification(history_of(members, pin))
    lines = members.get("events.jsonl", b"").split(b"\n")
    unended = lines[-1] != b""
    if not unended:
        lines.pop()
    too_many = len(lines) > 4_095
    lines = lines[:4_096]
    proofs = proven(judged.history, members, lines)
    for place, line in enumerate(lines):
        proof = None if isinstance(proofs, Refused) else proofs[place]
        judged.take(line, None if isinstance(proof, (Refused, type(None))) else proof.index)
    if not lines:
        judged.fail("empty", "no events", CANNOT, -1)
    if too_many:
        judged.fail("bundle", "too many events", INVALID, -1)
    if unended:
        judged.fail("bundle", "no line break after the last event", INVALID, -1)
    for name, data in members.items():
        if name.startswith("consistency/"):
            try:
                hashes(data)
            except Refused as refused:
                judged.fail("bundle", f"{name}: {refused.found}", INVALID, -1)
        if not is_member(name, len(lines)):
            judged.fail("bundle", f"a member {name}", INVALID, -1)
    cosigned = check_witnesses(judged, proofs, policy) if policy else None
    found = check_log(judged, proofs)
    if seen and found:
        check_seen(judged, members, found, seen)
    if found:
        check_timestamps(judged, members, found)
    for name, data in members.items():
        if name.startswith("evidence/") and sha256(data).hex() != name[9:]:
            judged.fail("evidence", name, INVALID, -1)
    return judged, found, cosigned


def report(judged, checkpoint, cosigned):
    named = checkpoint and {"origin": checkpoint.origin, "size": checkpoint.size, "root": checkpoint.root.hex()}
    said = {} if cosigned is None else {"cosignatures": cosigned}
    return said | {
        "verdict": WORDS[judged.verdict],
        "events": [dict(event, verdict=WORDS[event["verdict"]]) for event in judged.events],
        "failures": judged.failures,
        "gaps": judged.gaps,
        "checkpoint": named,
        "incident": judged.incident,
        "ending": judged.ending,
        "trust_roots": [root.version for root in judged.history.versions],
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Verify a caretaker bundle offline.")
    parser.add_argument("bundle")
    parser.add_argument("--trust-root", required=True, metavar="FILE|SHA256")
    parser.add_argument("--checkpoint", metavar="FILE")
    parser.add_argument("--policy", metavar="FILE")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        judged, *found = verify(chosen.bundle, chosen.trust_root, chosen.checkpoint, chosen.policy)
        document, verdict = report(judged, *found), judged.verdict
    except Refused as refused:
        verdict = refused.verdict
        failure = {"seq": 0, "rule": "bundle", "expected": "something to verify", "found": refused.found}
        document = {"verdict": WORDS[verdict], "events": [], "failures": [failure], "gaps": [], "checkpoint": None}
    if chosen.json:
        print(json.dumps(document))
    else:
        for failure in document["failures"]:
            print(ascii(f"event {failure['seq']}: {failure['rule']}: found {failure['found']}")[1:-1])
        print("verdict:", document["verdict"])
    return CODES[verdict]


if __name__ == "__main__":
    sys.exit(main())
