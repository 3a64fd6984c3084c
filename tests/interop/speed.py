#!/usr/bin/env python3
"""Verifies the signatures of a log's first events with securesystemslib, in as many processes as there are processors.

    speed.py FOLDER [EVENTS]

FOLDER holds `tile/entries/…` as `caretaker log export` writes it, and `root/1.json`. Prints one JSON document. Chains, statements
and the tree are not looked at: only what the library does, reading an envelope and verifying its signature.
"""

import base64
import json
import multiprocessing
import os
import sys
import time
from importlib.metadata import version

from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

IN_TOTO = "application/vnd.in-toto+json"


def entries(folder: str, count: int) -> list[bytes]:
    found: list[bytes] = []
    tile = 0
    while len(found) < count:
        name = f"{tile:03}" if tile < 1000 else f"x{tile // 1000:03}/{tile % 1000:03}"
        with open(os.path.join(folder, "tile", "entries", name), "rb") as file:
            data = file.read()
        at = 0
        while at < len(data):
            length = int.from_bytes(data[at : at + 2], "big")
            entry = data[at + 2 : at + 2 + length]
            at += 2 + length
            if IN_TOTO.encode() in entry:
                found.append(entry)
        tile += 1
    return found[:count]


def keys(folder: str) -> dict[str, SSlibKey]:
    with open(os.path.join(folder, "root", "1.json"), "rb") as file:
        document = json.loads(base64.b64decode(json.load(file)["payload"]))
    listed = [key for role in document["roles"].values() for key in role]
    # A signature whose key id is not the key's is skipped by the library, so each key has the id that envelopes name.
    return {
        key["keyid"]: SSlibKey(key["keyid"], "ed25519", "ed25519", {"public": base64.b64decode(key["public"]).hex()})
        for key in listed
    }


def work(folder: str, part: list[bytes]) -> int:
    known = keys(folder)
    for entry in part:
        document = json.loads(entry)
        # Taken before the library takes the dictionary apart.
        keyid = document["signatures"][0]["keyid"]
        Envelope.from_dict(document).verify([known[keyid]], 1)
    return len(part)


def main() -> int:
    folder = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
    processes = os.cpu_count() or 1
    found = entries(folder, count)
    parts = [(folder, found[place::processes]) for place in range(processes)]
    with multiprocessing.Pool(processes) as pool:
        pool.starmap(work, [(folder, [])] * processes)
        begin = time.monotonic()
        done = sum(pool.starmap(work, parts))
        seconds = time.monotonic() - begin
    told = {"version": version("securesystemslib"), "events": done, "seconds": seconds, "processes": processes}
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
