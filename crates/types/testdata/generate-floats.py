#!/usr/bin/env python3
"""Asks a real server how floats print; prints `width|bits in hex|text|text with extra_float_digits 0|and -3` lines.

usage: generate-floats.py PSQL... > floats.txt      (PSQL: a command that runs psql -XAt, e.g. psql -XAt -h /tmp)
"""
import random
import struct
import subprocess
import sys

random.seed(8)
f8 = {random.getrandbits(64) for _ in range(400)}
# Numbers of few digits, powers of two and ten, and their neighbours, where shortest forms meet boundaries.
for e in range(-324, 309, 3):
    bits = struct.unpack("<Q", struct.pack("<d", float(f"{random.choice([1, 2, 5, 9, 12, 375])}e{e}" if e < 300 else f"1e{e}")))[0]
    f8 |= {bits, bits + 1}
for e in range(50, 140):
    bits = struct.unpack("<Q", struct.pack("<d", 2.0 ** e))[0]
    f8 |= {bits - 1, bits, bits + 1}
for e in range(15, 40):
    for d in range(1, 40):
        f8.add(struct.unpack("<Q", struct.pack("<d", float(f"{d}e{e}")))[0])
f4 = {random.getrandbits(32) for _ in range(400)}
for e in range(-45, 39):
    f4.add(struct.unpack("<I", struct.pack("<f", float(f"{random.choice([1, 2, 3])}e{e}")))[0])
for e in range(20, 60):
    bits = struct.unpack("<I", struct.pack("<f", 2.0 ** e))[0]
    f4 |= {bits - 1, bits, bits + 1}
for e in range(4, 14):
    for d in range(1, 30):
        f4.add(struct.unpack("<I", struct.pack("<f", float(f"{d}e{e}")))[0])
rows = []
for b in sorted(f8):
    v = struct.unpack("<d", struct.pack("<Q", b))[0]
    if v == v:
        rows.append(("8", f"{b:016x}", f"'{v!r}'::float8"))
for b in sorted(f4):
    v = struct.unpack("<f", struct.pack("<I", b))[0]
    if v == v:
        rows.append(("4", f"{b:08x}", f"'{v!r}'::float4"))
answers = []
for digits in (1, 0, -3):
    sql = f"set extra_float_digits = {digits};\n" + "\n".join(f"select {e};" for _, _, e in rows)
    answers.append(subprocess.run(sys.argv[1:] + ["-q"], input=sql, capture_output=True, text=True, check=True).stdout.split("\n"))
for (width, bits, _), *texts in zip(rows, *answers):
    print("|".join([width, bits, *texts]))
