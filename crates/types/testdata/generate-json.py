#!/usr/bin/env python3
"""Asks a real server how json, jsonb and network addresses read, print, send, lie on disk, hash and order.

usage: generate-json.py DIRECTORY PSQL...

writes DIRECTORY/json.txt        type TAB input TAB `=text TAB binary in hex TAB hash(0) TAB hash(42) TAB stored bytes in hex TAB pretty text`
                                 or `!SQLSTATE message TAB detail`
       DIRECTORY/json-order.txt  type TAB rank TAB text
"""
import subprocess
import sys

out_dir, psql = sys.argv[1], sys.argv[2:]
SETUP = r"""
create extension if not exists pageinspect schema public;
create or replace function esc(t text) returns text language sql as $f$
  select replace(replace(replace(t, '\', '\\'), e'\t', '\t'), e'\n', '\n') $f$;
create or replace function probe_json(t text, i text) returns text language plpgsql as $f$
declare v text; b text; h0 text; h1 text; s text; msg text; det text; h text; st text; p text;
begin
  select x.h into h from (values ('jsonb','jsonb_hash_extended'),('inet','hashinetextended'),('cidr','hashinetextended'),('macaddr','hashmacaddrextended'),('macaddr8','hashmacaddr8extended')) x(t,h) where x.t = probe_json.t;
  execute format('select format(''%%s'', x), encode(%s_send(x), ''hex'') from (select %L::%s as x) y', t, i, t) into v, b;
  if h is not null then execute format('select %s(x, 0), %s(x, 42) from (select %L::%s as x) y', h, h, i, t) into h0, h1; end if;
  if t = 'jsonb' then p := jsonb_pretty(i::jsonb); end if;
  if t <> 'json' then
    execute format('create temp table s on commit drop as select %L::%s as v', i, t);
    select encode(t_attrs[1], 'hex') into st from heap_page_item_attrs(get_raw_page('s', 0), 's'::regclass);
    drop table s;
  end if;
  return '=' || esc(v) || e'\t' || b || e'\t' || coalesce(h0, '') || e'\t' || coalesce(h1, '') || e'\t' || coalesce(st, '') || e'\t' || coalesce(esc(p), '');
exception when others then
  get stacked diagnostics s = returned_sqlstate, msg = message_text, det = pg_exception_detail;
  return '!' || s || ' ' || esc(msg) || e'\t' || esc(det);
end $f$;
"""
JSON = [
    "null", "true", "false", "1", "-1", "0", "-0", "1.10", "1e5", "1E+5", "1.5e-3", "-0.0", "123456789012345678901234567890.123", "1e400", '""', '"a"', '"a b"', '"\\u0061"', '"\\n\\t\\r\\b\\f\\/\\\\\\""', '"é"', '"\\u00e9"', '"\\ud83d\\ude00"', "[]", "{}",
    "[1,2,3]", "[ 1 , 2 ]", '{"a":1}', '{"b":1,"a":2}', '{"aa":1,"b":2,"":3}', '{"a":1,"a":2}', '{"a":1,"b":2,"a":3}', '[[],[[]],{}]', '{"a":{"b":{"c":[1,{"d":null}]}}}', '[null,true,false,"x",1.50,[],{}]', ' {"a" : [ 1, "two", null ] } ', '\n[\t1\r]\n', '{"k":"v","long key here":[1,2,3,4,5,6,7,8,9,10],"z":{"y":"x"}}',
    "[" + ",".join(str(i) for i in range(100)) + "]", "{" + ",".join(f'"k{i}":{i}' for i in range(70)) + "}", "[" + ",".join(f'"{"x" * (i % 7)}"' for i in range(70)) + "]", "[" * 50 + "]" * 50, '["a",1,"bb",2,"ccc",3.25,{"x":"y"},[1],"dddd"]', "[1.000,100000,0.00001,12345678.9]",
    # faults
    "", " ", "nul", "nulls", "True", "tru e", "1 2", "01", "1.", ".5", "+1", "1e", "1e+", "-", "--1", "1.5.5", "0x10", "1a", "NaN", "Infinity", "'a'", '"a', '"a\\', '"\\x"', '"\\u00"', '"\\u00g0"', '"\\u0000"', '"\\ud83d"', '"\\ude00"', '"\\ud83d\\ud83d"', '"\\ud83dx"', '"\\ud83d\\n"', '"\\ud83d\\u0041"', '"a\tb"', '"a\nb"', '"\x01"', "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{", "}", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', "{1:2}", "{a:1}", '{"a" 1}', '{"a":1 "b":2}', '{"a":1,2}', "{,}", '{"a"::1}', "[1}", '{"a":1]', "[]]", "{}{}", "null null", "@", "[@]", "[é]", "é", "tru\u00e9", '"\\é"', '[1,2,"x', '{"a":"b","c"}', '{"a":[1,2}', "[1,2,nul]", "1,2", ",", ":", "\\", '{"a":1}x', '["\\u12"]', '"\\u', '"\\u1', "1e999999", "[true,flase]", "_", "a_b", "-a", "1_000",
]
INET = ["10.0.0.1", "10.0.0.1/32", "10.0.0.0/8", "10.0.0.1/8", "10/8", "10", "10.1", "10.1/16", "10.1/17", "10.1/24", "10.1.2/24", "10.1.2.3/0", "0.0.0.0/0", "0/0", "255.255.255.255", "256.0.0.1", "1.2.3.4.5", "1.2.3", "1.2.3.", "1.2.3.4.", "10./8", ".1.2.3", "1..2.3", "01.002.003.4", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/x", "1.2.3.4/8x", "1.2.3.4/08", " 1.2.3.4", "1.2.3.4 ", "", "x", "/8", "-1.2.3.4", "0x0a", "0x0a000001", "0xa", "0x0a0000/24", "0x", "0xg", "192", "172", "224", "224.1", "240", "128", "127", "191.1", "192.168", "192.168/25", "192.168.1", "239",
        "::1", "::", "::/0", "::1/128", "fe80::/10", "fe80::1/64", "2001:db8::1", "2001:DB8:0:0:1:0:0:1", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7", "1::2::3", ":1", "1:", "::ffff:1.2.3.4", "::1.2.3.4", "::ffff:0:0", "::ffff:1.2.3.4/96", "::1.2.3.4/120", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "::1.2.3.4.5", "::1.2.3.256", "::1.02.3.4", "::1..3.4", "::1.2.3.", "12345::", "g::", "::/129", "::/128", "::/08", "::/", "::/0 ", "0:0:0:0:0:0:0:0", "1:0:0:2:0:0:0:3", "0:0:1:0:0:0:0:0", "1:0:2:0:3:0:4:0", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "1::8", "::0.0.0.2", "::0.1.0.0", "::1:0", "::100:0", "0:0:0:0:ffff::", "64:ff9b::1.2.3.4", "::ffff", "1.2.3.4::", "fe80::1%eth0", "::ffff:0.0.0.1", "0:0:0:0:0:ffff:1:2", "::ffff:102:304", ":::", "::1/64"]
MAC = ["08:00:2b:01:02:03", "08-00-2b-01-02-03", "08002b:010203", "08002b-010203", "0800.2b01.0203", "0800-2b01-0203", "08002b010203", "08002B010203", " 08:00:2b:01:02:03 ", "8:0:2b:1:2:3", "08:00:2b:01:02", "08:00:2b:01:02:03:04", "08:00:2b:01:02:xx", "100:00:2b:01:02:03", "08:00:2b:01:02:1ff", "", "x", "08002b0102", "08002b01020304", "08:00-2b:01:02:03", "0800:2b01:0203", "08:00:2b:01:02:03x", "08:00:2b:01:02:-1", "0x8:0:0:0:0:0", "+8:0:0:0:0:0", "08: 00:2b:01:02:03", "08 :00:2b:01:02:03", "ffffffffffff", "zz:00:00:00:00:00", "1-2-3-4-5-6",
       "08:00:2b:01:02:03:04:05", "08-00-2b-01-02-03-04-05", "08002b0102030405", "08002b:0102030405", "0800.2b01.0203.0405", "0800:2b01:0203:0405", "08002b01:02030405", "08:00:2b:01:02:03:04:05:06", "08:00:2b:01:02:03:04", "08.00.2b.01.02.03.04.05", "08:00-2b:01:02:03:04:05", "08002b010203 x", "08002b010203  ", "08002b0102030", "08002b01020304050", "8:0:2b:1:2:3:4:5"]
ORDER = {
    "jsonb": ["null", "true", "false", "1", "1.0", "-1", "2", '""', '"a"', '"b"', '"aa"', '"é"', "[]", "[null]", "[1]", "[1,2]", "[[]]", "[[],[]]", "[{}]", "{}", '{"a":1}', '{"a":2}', '{"b":1}', '{"aa":1}', '{"a":1,"b":2}', '{"a":[]}', '{"a":{}}', "[true]", '["a"]', '["a","b"]', '["ab"]', '["a\\u0001"]', "[0.5]", "[1e10]", '{"a":null}', '{"":1}', "1e100", "0.00", "0", "-1e5"],
    "inet": ["10.0.0.1", "10.0.0.0/8", "10.0.0.0/9", "10.0.0.1/8", "10.0.0.1/9", "0.0.0.0/0", "255.255.255.255", "10.128.0.0/9", "11.0.0.0/8", "::1", "::/0", "fe80::/10", "::ffff:1.2.3.4", "10.1.0.0/16", "10.0.0.0/32", "10.0.0.2", "128.0.0.0/1", "1.2.3.4/0"],
    "cidr": ["10.0.0.0/8", "10.0.0.0/9", "10/32", "0/0", "::/0", "fe80::/10"],
    "macaddr": ["00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "08:00:2b:01:02:03", "08:00:2b:01:02:04", "7f:00:00:00:00:00", "80:00:00:00:00:00"],
    "macaddr8": ["00:00:00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff:ff:ff", "08:00:2b:01:02:03:04:05", "80:00:00:00:00:00:00:00", "00:00:00:00:80:00:00:00"],
}


def lit(s):
    return "'" + s.replace("'", "''") + "'"


def esc(s):
    return s.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def run(sql):
    return subprocess.run(psql + ["-q", "-v", "ON_ERROR_STOP=1"], input=sql, capture_output=True, text=True, check=True).stdout


run(SETUP)
cases = [(t, i) for t in ["json", "jsonb"] for i in JSON] + [(t, i) for t in ["inet", "cidr"] for i in INET] + [(t, i) for t in ["macaddr", "macaddr8"] for i in MAC]
answers = run("set standard_conforming_strings = on;\n" + "".join(f"select replace(probe_json({lit(t)}, {lit(i)}), chr(13), '\\r');\n" for t, i in cases)).split("\n")
assert len(answers) == len(cases) + 1
with open(out_dir + "/json.txt", "w", newline="") as f:
    for (t, i), a in zip(cases, answers):
        f.write(f"{t}\t{esc(i)}\t{a}\n".replace("\r", "\\r"))
with open(out_dir + "/json-order.txt", "w") as f:
    for t, values in ORDER.items():
        rows = ", ".join(f"({lit(v)})" for v in values)
        f.write(run(f"select {lit(t)} || e'\\t' || dense_rank() over (order by v::{t}) || e'\\t' || replace(v, '\\', '\\\\') from (values {rows}) x(v) order by v::{t}, v;"))
