"""The client that the conformance suite starts: it hands the scenario to one process that does them all.

`forward.py SOCKET URL`; the library takes longer to import than most scenarios take.
"""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    given = {
        "url": sys.argv[-1],
        "scenario": os.environ.get("MCP_CONFORMANCE_SCENARIO", ""),
        "context": os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"),
    }
    connection.sendall(json.dumps(given).encode() + b"\n")
    sys.stdout.write(connection.makefile().read())
