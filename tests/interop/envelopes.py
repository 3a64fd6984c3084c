#!/usr/bin/env python3
"""Reads caretaker's envelopes with other people's libraries: securesystemslib verifies, in-toto-attestation validates.

    envelopes.py KEY FILE...

KEY is an Ed25519 public key as the trust root writes it (32 bytes in base64). Each FILE is a stored envelope. Prints one line a
file and ends with the number of envelopes read; exits with 1 at the first that is refused.
"""

import base64
import json
import sys

from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1 import statement_pb2
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey


def key_of(text: str) -> bytes:
    public = base64.b64decode(text, validate=True)
    if len(public) != 32:
        raise ValueError("an Ed25519 public key has 32 bytes")
    return public


def verified(path: str, public: bytes) -> dict:
    with open(path, "rb") as file:
        document = json.load(file)
    # A signature whose key id is not the key's is skipped by the library, so the key is given the id that the envelope names.
    keyid = document["signatures"][0]["keyid"]
    envelope = Envelope.from_dict(document)
    key = SSlibKey(keyid, "ed25519", "ed25519", {"public": public.hex()})
    envelope.verify([key], 1)
    statement = json.loads(envelope.payload)
    message = statement_pb2.Statement()
    json_format.Parse(envelope.payload, message)
    # The library's validation wants its own class; what it checks are type, subjects with digests, and a predicate.
    wrapped = Statement.copy_from_pb(message)
    wrapped.validate()
    return statement


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    public = key_of(sys.argv[1])
    for path in sys.argv[2:]:
        try:
            statement = verified(path, public)
        except Exception as error:  # whatever a foreign library raises is a refusal
            print(f"{path}: refused: {error!r}")
            return 1
        print(f"{path}: {statement['predicateType']}, {len(statement['subject'])} subjects")
    print(f"{len(sys.argv) - 2} envelopes read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
