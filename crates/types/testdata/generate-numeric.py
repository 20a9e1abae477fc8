#!/usr/bin/env python3
"""Asks a real server what numeric functions answer; prints `function|a|b|answer` lines (b empty for one argument).

usage: generate-numeric.py PSQL... > numeric.txt      (PSQL: a command that runs psql -XAt, e.g. psql -XAt -h /tmp)
An answer is the text, or `!SQLSTATE message`.
"""
import random
import subprocess
import sys

random.seed(36)
SPECIAL = ["NaN", "Infinity", "-Infinity", "0", "0.000", "1", "-1", "1.00", "-1.0", "0.5", "2", "10", "3", "0.1", "-0.1",
           "9999", "10000", "9999.9999", "0.00010000", "1e-20", "-1e-100", "1e100", "123456789012345678901234567890.12345",
           "170141183460469231731687303715884105728", "99999999999999999999999999999999999999", "0.9", "1.1", "0.90000001",
           "1.0000000000000000000000000000000000000001", "32767.5", "-32768.5", "4000.0004000", "0.0005", "5e-5", "1.5", "2.5",
           "-2.5", "12345.6789", "7e30", "0.00009999", "5000", "49999999.5", "1e-400", "3.14159265358979323846"]


def rnd():
    digits = random.choice([1, 2, 4, 5, 8, 9, 15, 16, 20, 37, 60])
    text = "".join(random.choice("0123456789" if random.random() < 0.7 else "09") for _ in range(digits))
    point = random.randint(0, digits)
    text = (text[:point] or "0") + ("." + text[point:] if point < digits else "")
    return ("-" if random.random() < 0.4 else "") + text


def small():
    return f"{random.uniform(-30, 30):.{random.randint(0, 12)}f}"


values = SPECIAL + [rnd() for _ in range(60)]
calls = []
for f in ["abs", "-", "sign", "ceil", "floor", "round", "trunc", "sqrt", "exp", "ln", "log", "scale", "min_scale",
          "trim_scale", "int2", "int4", "int8", "float4", "float8"]:
    calls += [(f, v, None) for v in values]
    if f in ("exp", "ln", "log", "sqrt"):
        calls += [(f, small(), None) for _ in range(60)]
pairs = [(a, b) for a in SPECIAL[:14] for b in SPECIAL[:14]]
pairs += [(random.choice(values), random.choice(values)) for _ in range(160)]
for f in ["+", "-", "*", "/", "%", "div", "gcd", "lcm", "log", "power", "cmp"]:
    calls += [(f, a, b) for a, b in pairs]
    if f in ("log", "power"):
        calls += [(f, small(), small()) for _ in range(120)]
        calls += [(f, small(), str(random.randint(-40, 40))) for _ in range(60)]
for f in ["round", "trunc"]:
    calls += [(f, v, str(random.choice([-70, -9, -5, -4, -3, -1, 0, 1, 2, 3, 4, 5, 7, 8, 12, 40]))) for v in values for _ in "123"]
for p, s in [(5, 2), (3, 0), (4, 4), (3, -2), (2, 5), (1000, 3), (38, 10)]:
    calls += [(f"typmod {p} {s}", v, None) for v in values]

lists = [[random.choice(values) for _ in range(random.randint(1, 8))] for _ in range(40)]
lists += [[str(random.randint(-50, 50)) for _ in range(9)], ["1.5"], ["2", "2", "2"], ["NaN", "1"], ["Infinity", "1"], ["Infinity", "-Infinity"]]
lists += [[small() for _ in range(random.randint(2, 9))] for _ in range(40)]
for f in ["sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp"]:
    calls += [(f, ",".join(v), None) for v in lists]

lines = []
for f, a, b in calls:
    if b is None:
        if f in ("sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp"):
            e = f"{f}(x::numeric) from unnest(string_to_array('{a}', ',')) x"
        elif f.startswith("typmod"):
            _, p, s = f.split()
            e = f"'{a}'::numeric({p},{s})"
        elif f == "-":
            e = f"- '{a}'::numeric"
        elif f in ("int2", "int4", "int8", "float4", "float8"):
            e = f"'{a}'::numeric::{f}"
        else:
            e = f"{f}('{a}'::numeric)"
    elif f in "+-*/%":
        e = f"'{a}'::numeric {f} '{b}'::numeric"
    elif f in ("round", "trunc"):
        e = f"{f}('{a}'::numeric, {b})"
    elif f == "cmp":
        e = f"numeric_cmp('{a}', '{b}')"
    else:
        e = f"{f}('{a}'::numeric, '{b}'::numeric)"
    lines.append(f"select pg_temp.say($${f}|{a}|{b or ''}|$$, $${e}$$);")
setup = """create function pg_temp.say(head text, e text) returns text language plpgsql as $f$
declare r text; s text; m text;
begin execute 'select ' || e into r; return head || coalesce(r, 'NULL');
exception when others then get stacked diagnostics s = returned_sqlstate, m = message_text; return head || '!' || s || ' ' || m;
end $f$;
"""
out = subprocess.run(sys.argv[1:] + ["-q"], input=setup + "\n".join(lines), capture_output=True, text=True, check=True).stdout
# Answers of thousands of digits teach nothing that shorter ones do not.
sys.stdout.writelines(line + "\n" for line in out.splitlines() if len(line) < 1500)
