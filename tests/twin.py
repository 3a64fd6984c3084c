#!/usr/bin/env python3
"""Puts the tests' questions to verifier.py, one a line, so that Python starts once a test: a JSON list in, JSON out."""

import base64
import contextlib
import io
import json
import sys

import verifier


def verify(*words):
    """What the command line says, and the exit code."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = verifier.main([*words, "--json"])
    return {"code": code, **json.loads(said.getvalue())}


def accepts(read, data):
    try:
        read(base64.b64decode(data))
    except verifier.Refused:
        return False
    return True


QUESTIONS = {
    "verify": verify,
    "json": lambda data, limit: accepts(lambda found: verifier.Reader(found, limit).parse(), data),
    "statement": lambda data: accepts(verifier.Statement, data),
    "trust-root": lambda data: accepts(verifier.TrustRoot, data),
    "key": lambda data: accepts(verifier.decode_key, data),
    "signature": lambda *fields: verifier.verifies(*map(base64.b64decode, fields)),
    "fast": lambda: verifier.Ed25519PublicKey is not None,
}

for line in sys.stdin:
    question, *arguments = json.loads(line)
    print(json.dumps(QUESTIONS[question](*arguments)), flush=True)
