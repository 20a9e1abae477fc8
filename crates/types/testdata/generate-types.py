#!/usr/bin/env python3
"""Asks a real server how types read, print, send, hash and order values.

usage: generate-types.py DIRECTORY PSQL...     (PSQL: a command that runs psql -XAt, e.g. psql -XAt -h /tmp)

writes DIRECTORY/pg_type.txt the built-in rows of pg_type, and whether they can be ordered and compared for equality
       DIRECTORY/io.txt     type TAB typmod TAB input TAB
                            `=text TAB binary in hex TAB extended hash with seed 0 TAB with seed 42 TAB stored bytes in hex`
                            or `!SQLSTATE message` (TAB detail)
       DIRECTORY/types.txt  the rows of pg_type (T), pg_enum (E), pg_attribute (A) and pg_range (R) of the types made here
       DIRECTORY/order.txt  type TAB rank TAB text: values in order, those of one rank equal
Backslash, tab and newline are written \\\\ \\t \\n.
"""
import subprocess
import sys

out_dir, psql = sys.argv[1], sys.argv[2:]
SETUP = r"""
create extension if not exists pageinspect schema public;
create schema if not exists probe; set search_path = probe, public, pg_catalog;
do $$ begin
  create type mood as enum ('sad', 'ok', 'happy');
  alter type mood add value 'meh' before 'ok';
  alter type mood add value 'glad' after 'ok';
  create type pair as (a int, b text);
  create type wide as (a "char", b bigint, c numeric, d text[], e pair, f bool);
  create type holed as (a int, gone text, b text);
  alter type holed drop attribute gone;
  create domain posint as int check (value > 0);
  create domain code as varchar(3);
  create domain code2 as code;
  create type textrange as range (subtype = text, collation = "C");
  create type floatrange as range (subtype = float8);
exception when duplicate_object then null; end $$;
create or replace function usable(clause text, t text) returns bool language plpgsql as $f$
begin execute format('select 1 from (values (null::%s), (null::%s)) v(x) %s by x', t, t, clause); return true;
exception when others then return false; end $f$;
create or replace function send_of(t regtype) returns text language sql as $f$
  select case when typsend = 0 then null else typsend::regproc::text end from pg_type where oid = t $f$;
create or replace function esc(t text) returns text language sql as $f$
  select replace(replace(replace(t, '\', '\\'), e'\t', '\t'), e'\n', '\n') $f$;
create or replace function probe(t text, m int, i text, mode text) returns text language plpgsql as $f$
declare v text; b text; st text; h0 text; h1 text; s text; msg text; det text; inp text; io oid; n int; e text; hp text;
begin
  select p.oid::regproc::text, p.pronargs, case when typelem <> 0 and typtype <> 'c' and typsubscript <> 0 and typlen = -1 then typelem else y.oid end
    into inp, n, io from pg_type y join pg_proc p on p.oid = y.typinput where y.oid = t::regtype;
  if m >= 0 then e := format('%s(%L::cstring, %s, %s)', inp, i, io, m);
  else e := format('%L::%s', i, t); end if;
  if mode = 'noout' then execute 'select ' || e; return '='; end if;
  execute format('select format(''%%s'', %s)', e) into v;
  if send_of(t::regtype) is not null then
    execute format('select encode(%s(%s), ''hex'')', send_of(t::regtype), e) into b;
  end if;
  begin
    select case when p.proname = 'hash_array_extended' then p.proname else p.proname end into hp
      from pg_opclass c join pg_amproc a on a.amprocfamily = c.opcfamily and a.amproclefttype = c.opcintype and a.amprocnum = 2
      join pg_proc p on p.oid = a.amproc
      join pg_type y on y.oid = t::regtype
      where c.opcmethod = 405 and c.opcdefault and c.opcintype =
        case when y.typtype = 'e' then 'anyenum'::regtype when y.typtype = 'c' then 'record'::regtype when y.typtype = 'r' then 'anyrange'::regtype
             when y.typtype = 'm' then 'anymultirange'::regtype when y.typtype = 'd' then y.typbasetype when y.typcategory = 'A' and y.typlen = -1 and y.typname !~ 'vector' then 'anyarray'::regtype
             when y.typname = 'varchar' then 'text'::regtype when y.typname ~ '^reg' then 'oid'::regtype else y.oid end;
    if hp is not null then
      execute format('select %s(%s::%s, 0), %s(%s::%s, 42)', hp, e, t, hp, e, t) into h0, h1;
    end if;
  exception when others then h0 := null; h1 := null; end;
  if m < 0 then begin
    execute format('create temp table s on commit drop as select (%s)::%s as v', e, t);
    select encode(t_attrs[1], 'hex') into st from heap_page_item_attrs(get_raw_page('s', 0), 's'::regclass);
    drop table s;
  exception when others then st := null; end; end if;
  return '=' || esc(v) || e'\t' || coalesce(b, '') || e'\t' || coalesce(h0, '') || e'\t' || coalesce(h1, '') || e'\t' || coalesce(st, '');
exception when others then
  get stacked diagnostics s = returned_sqlstate, msg = message_text, det = pg_exception_detail;
  return '!' || s || ' ' || esc(msg) || case when det <> '' then e'\t' || esc(det) else '' end;
end $f$;
"""
# type, typmod (-1 none) -> inputs
IO = [
    ("bool", -1, ["t", "TRUE", " yes ", "y", "on", "1", "f", "fal", "NO", "of", "off", "0", "o", "", "2", "tr ue", "truex"]),
    ("int2", -1, ["0", "32767", "-32768", "32768", "-32769", " 12 ", "+7", "0x7fff", "0X8000", "-0x8000", "0o17", "0b101", "1_000",
                  "_1", "1_", "1__0", "0x_1", "", " ", "-", "1 2", "12a", "99999x", "0x", "1e3", "1.5"]),
    ("int4", -1, ["0", "2147483647", "-2147483648", "2147483648", "-2147483649", "\t12\n", "0xFFFFFFFF", "-0x80000000", "0b11",
                  "99999999999x", "2147483649x", "abc", "0b2", "0o8", "--1", "+-1"]),
    ("int8", -1, ["0", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775809", "0x7FFFFFFFFFFFFFFF",
                  "1_2_3", "99999999999999999999", "x"]),
    ("float4", -1, ["0", "-0", "1", "1.5", "100000", "999999", "1e6", "1e5", "123456789", "1e-4", "1e-5", "0.0001234", "3.4028235e38", "1e39",
                    "1e-45", "1e-46", "NaN", "nan", "Infinity", "-inf", "inf", "+infinity", "16777216", "33554432", "8388608.5", "1.17549435e-38",
                    "5e-1", ".5", "5.", ".", "", " 1 ", "1 2", "1e", "1e+", "abc", "-nan", "67108864", "4.2949673e9", "8.589973e9"]),
    ("float8", -1, ["0", "-0", "1", "0.1", "1e15", "1e14", "999999999999999", "1e16", "123456789012345678", "1e-4", "1e-5", "0.00001234", "1e22", "1e23",
                    "9.5e22", "1.7976931348623157e308", "1e309", "-1e309", "4.9e-324", "5e-324", "2e-324", "1e-400", "0e-400", "NaN", "-Infinity", "iNf",
                    "9007199254740993", "9007199254740992", "18014398509481984", "2.2250738585072014e-308", "3.0000000000000004", "4.35", "5e-1", ".5", "5.", ".", "", " 1.5\n",
                    "0x10", "1e", "1ee1", "1d", "infinit", "nanx", "1e1000000000000", "0x1.8p3", "-0X1p-2", "0x.8", "0x", "0xg", "0x1p", "0x1p+4", "8.41e21", "9e22", "5e22", "3e23", "7e25", "2e27", "1.2e26"]),
    ("numeric", -1, ["0", "-0", "000.00", "1.10", ".5", "5.", "-.5e1", "1e10", "1e-10", "1E+5", "12_34.5_6", "1_", "1._5", "_1", "1e1_0", "0x1F", "0xffffffffffffffffffff",
                     "0b101", "0o777", "0x", "0x_f", "-0x1F", "NaN", "nan", " inf ", "-Infinity", "+inf", "-NaN", "infx", "", ".", "-", "1e", "1e99999999999", "1e131072", "1e131071",
                     "1e-16383", "1e-16384", "123456789.123456789", "1 2", "9999.99995", "1.2.3", "0.00000000000000000000000000000000000000000000000000000000000000001"]),
    ("numeric", 327686, ["999.99", "999.994", "999.995", "-1234", "1.005", "NaN", "inf", "0", "0.004", "1e3"]),
    ("text", -1, ["", "abc", " a b ", "ünï", "\\x", "a\tb\nc", "'q'", "x" * 130]),
    ("varchar", -1, ["", "abc  "]),
    ("varchar", 7, ["abc", "abcd", "abc   ", "ab", "üüü", "üüüü", "abc d"]),
    ("bpchar", -1, ["", "abc  ", "ab"]),
    ("bpchar", 8, ["abc", "abcd", "abcd  ", "abcde", "", "üü", "üüüü  "]),
    ('"char"', -1, ["", "a", "abc", "\\101", "\\377", "\\1", "\\", "ü"]),
    ("name", -1, ["", "abc", "x" * 63, "x" * 64, "x" * 62 + "ü", "ü" * 40]),
    ("bytea", -1, ["", "\\x", "\\x00fF", "\\x 0 0", "\\x0 0", "\\xabc", "\\xzz", "\\x1\u00fc", "abc", "a\\\\b", "\\001\\377", "\\400", "\\1", "a\\", "\u00fc"]),
    ("varbit", -1, ["", "0", "101", "b101", "B1", "x1F", "X", "b", "102", "xG", "11111111", "000000001", "b1\u00fc"]),
    ("varbit", 4, ["1010", "10101", "xF", "xFF", "1"]),
    ("bit", 3, ["101", "1010", "10", "xF"]),
    ("uuid", -1, ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}", "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
                  "{a0eebc999c0b4ef8bb6d6bb9bd380a11", "a0eebc999c0b4ef8bb6d6bb9bd380a11x", "", "a0eebc999c0b4ef8bb6d6bb9bd380a11-", "a-0eebc999c0b4ef8bb6d6bb9bd380a11"]),
    ("oid", -1, ["0", "4294967295", "4294967296", "-1", "-2147483648", "-2147483649", "010", "0x1F", " 12 ", "12x", "", " ", "99999999999999999999", "08"]),
    ("xid", -1, ["5", "-1", "0x10", "4294967296", "x"]),
    ("cid", -1, ["5", "4294967295", "x"]),
    ("xid8", -1, ["0", "18446744073709551615", "18446744073709551616", "-1", "0x1F", "x", " 7 "]),
    ("pg_lsn", -1, ["0/0", "16/B374D848", "FFFFFFFF/ffffffff", "1/", "/1", "100000000/1", "1/2/3", "x/1", "", "0/ 1"]),
    ("tid", -1, ["(0,1)", "(4294967295,65535)", "(4294967296,1)", "(-1,2)", "(1,65536)", "(1,2", "(1,2)x", "(1 ,2)", "( 1, 2)", "1,2", "abc", "", "(1,-1)", "x(1,2)"]),
    ("money", -1, ["0", "1", "-1", "$1,234.56", "(3.456)", "-$5", "$-5", "1.005", "1.004", "-1.005", "92233720368547758.07", "92233720368547758.08", "-92233720368547758.08", "-92233720368547758.09",
                   "1234567890", "12", "123", "1234", "x", "1e5", "1-", "1.2.3", "", " $ 1 ", "1,2,3", "+5", "5$", "1 )", "1x"]),
    ("oidvector", -1, ["", "1", "1 2 3", " 4294967295  -1 ", "1 x", "1,2", "1x"]),
    ("int2vector", -1, ["", "1", "1 -2 3", " 5  6 ", "1 99999", "1 2x", "1,2", "x"]),
    ("regtype", -1, ["-", "25", "0", "4294967296"]),
    ("regclass", -1, ["-", "999999", "0"]),
    ("regproc", -1, ["-", "0", "999999"]),
    ("regoper", -1, ["0"]),
    ("int4[]", -1, ["{}", " { } ", "{1}", "{1,2,3}", "{1,NULL,3}", "{null}", "{{1,2},{3,4}}", "{{1,2},{3}}", "{{1},2}", "{1,{2}}", "{{},{}}", "{{{}}}", "[2:4]={1,2,3}", "[0:1][5:6]={{1,2},{3,4}}",
                    "[1:2]={1,2,3}", "[2]={1,2}", "[2:1]={}", "[1:1]={}", "[a:1]={1}", "[1:2={1,2}", "[1:]={1}", "[1:2]{1,2}", "[1:2]= {1,2}", "[1:2] ={1,2}", "[1:2147483647]={1}", "[-2147483648:2147483646]={1}",
                    "[99999999999:1]={1}", "[]={1}", "[2147483646:2147483646]={1}", "[1:2]=x", "1", "", "{", "{1", "{1,", "{1,}", "{,1}", "{1,,2}", "{1 2}", "{1}}", "{1}x", "{\"1\"}", "{\"1\"2}", "{1\"2\"}", "{\"1}", "{a}", "{1,99999999999}",
                    "{{{{{{1}}}}}}", "{{{{{{{1}}}}}}}", "[1:1][1:1][1:1][1:1][1:1][1:1][1:1]={1}", "{{1,2},3}", "{{1}{2}}", "{1 , 2 }", "{+1,-0}", "{[1}"]),
    ("text[]", -1, ["{}", "{a}", "{a b, c }", "{\"\"}", "{NULL,\"NULL\",null,nUlL}", "{\"a\\\"b\",\"c\\\\d\"}", "{a\\,b}", "{\\N\\ULL}", "{\" \"}", "{a\\ }", "{x\\\"y}", "{\"{}\",\"a,b\"}", "{\u00fc}", "{\\", "{a\\", "{\"a\\", "[5:6]={x,NULL}", "{{a,b},{c,d},{e,f}}",
                    "{{{a},{b}},{{c},{d}}}", "{a{}", "{\"\" \"\"}"]),
    ("varchar[]", 6, ["{ab,c}", "{abc}", "{ab   }"]),
    ("bool[]", -1, ["{t,f,NULL}", "{x}"]),
    ("int2[]", -1, ["{1,2,3}"]),
    ("int8[]", -1, ["{1,NULL,3}"]),
    ("float8[]", -1, ["{1.5,NaN,-0}"]),
    ("numeric[]", -1, ["{1.50,NaN,1e10}", "{{1},{2}}"]),
    ("bytea[]", -1, ["{\"\\\\x01\",\"\"}"]),
    ("name[]", -1, ["{a,\"b c\"}"]),
    ('"char"[]', -1, ["{a,\"\",\"\\\\377\"}"]),
    ("uuid[]", -1, ["{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"]),
    ("varbit[]", -1, ["{101,\"\",x1F}"]),
    ("bpchar[]", -1, ["{\"a  \",b}"]),
    ("tid[]", -1, ["{\"(1,2)\",\"(3,4)\"}"]),
    ("money[]", -1, ["{\"$1,234.00\",5}"]),
    ("oidvector[]", -1, ["{\"1 2\",3}"]),
    ("mood", -1, ["sad", "meh", "happy", "Sad", "", "x" * 70]),
    ("mood[]", -1, ["{sad,happy,NULL}", "{nope}"]),
    ("pair", -1, ["(1,a)", "(,)", " ( 1 , a ) ", "(1,\"a,b\")", "(1,\"a\"\"b\")", "(1,a\\\"b)", "(1,\"\")", "(1)", "(1,2,3)", "1,2", "(1,2", "(1,2)x", "(x,y)", "(1,\"a)", "(1,a\\", "", "(1,(x))", "(99999999999,a)", "(1,a b)", "(1, a)"]),
    ("wide", -1, ["(a,5,1.50,\"{x,\"\"y z\"\"}\",\"(1,\"\"q\"\")\",t)", "(,,,,,)", "(b,,NaN,{},\"(,)\",f)"]),
    ("holed", -1, ["(1,x)", "(,)", "(1,2,3)"]),
    ("pair[]", -1, ["{\"(1,a)\",NULL,\"(2,\\\"b c\\\")\"}"]),
    ("posint", -1, ["5"]),
    ("code", -1, ["abc", "ab"]),
    ("code2", -1, ["abc"]),
    ("posint[]", -1, ["{1,2}"]),
    ("int4range", -1, ["empty", " EMPTY ", "emptyx", "[1,5)", "[1,5]", "(1,5)", "(1,2)", "(,5)", "[1,)", "(,)", "[,]", "[5,1]", "[1,1]", "[1,1)", "(1,1]", " [ 1 , 5 ) ", "[\"1\",5)", "[1,2147483647]", "(2147483647,)", "[1", "1,2)", "[1,2,3)", "[1)", "[1,2)x", "[1,x)", "[1,\"2", "[1,2\\", "", "[,2147483647]"]),
    ("int8range", -1, ["[1,5]", "(1,)", "[9223372036854775807,9223372036854775807]"]),
    ("numrange", -1, ["[1.0,2.50)", "(1,1)", "[1,1]", "(,1.5]", "[2,1]", "empty", "[-Infinity,Infinity]"]),
    ("textrange", -1, ["[a,b)", "[\"a b\",\"c,d\"]", "[,z]", "[\"\",a)", "[\"a\\\"b\",\"c\"\"d\")", "(\\,,z)"]),
    ("floatrange", -1, ["[1.5,2.5)", "[-0,0]", "[0,-0]", "[1,NaN]"]),
    ("int4range[]", -1, ["{\"[1,5)\",empty,NULL}"]),
    ("int4multirange", -1, ["{}", "{[1,5)}", "{[1,3),[5,8)}", "{[5,8),[1,3)}", "{[1,3),[3,8)}", "{[1,5),[2,8)}", "{[1,2],[3,4]}", "{empty}", "{empty,[1,2)}", "{(,5),[3,)}", " { [1,2) , [4,5) } ", "{[1,2)", "[1,2)", "{[1,2),}", "{x}", "{[1,2)}x", "{[1,2) [3,4)}", "{,}", "",
                             "{[1,2),[3,4),[5,6),[7,8),[9,10),[11,12)}", "{[1,10),[2,3),[4,5)}", "{[5,1)}"]),
    ("nummultirange", -1, ["{[1.5,2.5),(2.5,3)}", "{[1,2],(2,3)}", "{[1,2),(2,3)}", "{[1.000,2),[100000.5,200000.25),[300000,400000.125)}", "{(,)}"]),
    ("int8multirange", -1, ["{[1,3),[5,8),[10,12),[14,15),[17,18)}"]),
]
ORDER = {
    "bool": ["f", "t"], "int2": ["-32768", "-1", "0", "1", "32767"], "int4": ["-2147483648", "-1", "0", "1", "2147483647"],
    "int8": ["-9223372036854775808", "-1", "0", "1", "4294967296"], "float4": ["-inf", "-1.5", "-1e-30", "-0", "0", "1e-30", "1", "inf", "nan"],
    "float8": ["-inf", "-1e300", "-1", "-1e-300", "-0", "0", "1e-300", "1", "1e300", "inf", "nan"],
    "numeric": ["-inf", "-1e100", "-10000.5", "-10000", "-1.5", "-1.50", "-1", "-0.00001", "0", "0.000", "0.00001", "0.0001", "0.5", "1", "1.00", "1.0001", "9999", "10000", "1e4", "10001", "1e100", "inf", "nan"],
    "text": ["", "a", "ab", "b", "B", "a b", "ä", "é", "z", " "], "varchar": ["", "a", "a "], "bpchar": ["", "  ", "a", "a  ", "a b", "b"],
    '"char"': ["", "a", "z", "\\200", "\\377", "0"], "name": ["a", "b", "A", "_"], "bytea": ["", "\\x00", "\\x0000", "\\x00ff", "\\x01", "\\xff", "\\xff00"],
    "varbit": ["", "0", "00", "1", "10", "01", "00000000", "000000000", "11111111", "111111111", "0000000000000000"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "7fffffff-ffff-ffff-ffff-ffffffffffff"],
    "oid": ["0", "1", "4294967295", "2147483648"], "xid8": ["0", "18446744073709551615", "5"], "pg_lsn": ["0/0", "1/0", "0/FFFFFFFF", "FFFFFFFF/0"],
    "tid": ["(0,1)", "(0,2)", "(1,1)", "(65536,1)", "(1,256)", "(4294967295,1)"], "money": ["-5", "0", "5", "1000000"],
    "oidvector": ["", "1", "2", "1 1", "1 2", "4294967295", "0 0 0"], "int2vector": ["1", "2", "1 1", "-1", "-1 5"],
    "int4[]": ["{}", "{1}", "{1,2}", "{2}", "{NULL}", "{1,NULL}", "[2:2]={1}", "[0:0]={1}", "{{1}}", "{{1,2}}", "{{1},{2}}", "{1,2,3}", "{-1}"],
    "text[]": ["{}", "{a}", "{a,b}", "{ab}", "{\"\"}", "{NULL}", "{\"\",a}"], "numeric[]": ["{1}", "{1.0}", "{0.5,2}", "{NaN}"],
    "mood": ["sad", "meh", "ok", "glad", "happy"], "pair": ["(1,a)", "(1,b)", "(1,)", "(,a)", "(,)", "(2,a)", "(1,ab)"],
    "int4range": ["empty", "(,)", "(,1)", "(,5)", "[1,2)", "[1,5)", "[1,)", "[2,3)"],
    "numrange": ["empty", "(,)", "(,1)", "(,1]", "[1,2)", "[1,2]", "(1,2)", "(1,2]", "[1.0,2.00)", "[1,)", "(1,)", "[0.5,0.5]"],
    "textrange": ["[a,b)", "[a,b]", "(a,b)", "[\"\",a)", "[a,aa)", "(,)"],
    "int4multirange": ["{}", "{[1,2)}", "{[1,2),[4,5)}", "{[1,3)}", "{(,)}", "{[2,3)}", "{[1,2),[3,5)}"],
    "code": ["a", "b", "ab"], "posint": ["1", "2", "10"], "int4range[]": ["{}", "{\"[1,2)\"}", "{empty}", "{\"[1,2)\",empty}"],
}


def lit(s):
    return "'" + s.replace("'", "''") + "'"


def run(sql):
    return subprocess.run(psql + ["-q", "-v", "ON_ERROR_STOP=1"], input=sql, capture_output=True, text=True, check=True).stdout


def esc(s):
    return s.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


subprocess.run(psql + ["-q"], input=SETUP, text=True, check=True)
head = "set search_path = probe, public, pg_catalog; set standard_conforming_strings = on;\n"
wanted = [(t, m, i) for t, m, inputs in IO for i in inputs]
# A regproc of an enum's value hashes by OID, which differs from cluster to cluster.
answers = run(head + "\n".join(f"select probe({lit(t)}, {m}, {lit(i)}, '');" for t, m, i in wanted)).split("\n")
assert len(answers) == len(wanted) + 1, (len(answers), len(wanted))
with open(out_dir + "/io.txt", "w") as f:
    for (t, m, i), a in zip(wanted, answers):
        f.write(f"{t}\t{m}\t{esc(i)}\t{a}\n")
with open(out_dir + "/pg_type.txt", "w") as f:
    f.write(run(head + r"""\pset fieldsep '\t'
select oid, typname, typlen, typbyval, typcategory, typispreferred, typdelim, typelem, typarray, typalign, typcollation, typtype,
       usable('order', format_type(oid, null)), usable('group', format_type(oid, null))
  from pg_type where oid < 10000 and typtype in ('b', 'r', 'm') and typname !~ '^_' order by oid;
"""))
with open(out_dir + "/types.txt", "w") as f:
    f.write(run(r"""\pset fieldsep '\t'
select 'T', oid, typname, typlen, typalign, typbyval, typtype, typcategory, typdelim, typelem, typarray, typcollation, typrelid, typbasetype, typtypmod
  from pg_type where typnamespace = 'probe'::regnamespace order by oid;
select 'E', enumtypid, oid, enumsortorder, enumlabel from pg_enum order by oid;
select 'A', t.oid, attname, atttypid, atttypmod, attcollation, attisdropped, attlen, attalign from pg_type t join pg_attribute on attrelid = typrelid
  where typnamespace = 'probe'::regnamespace and attnum > 0 order by t.oid, attnum;
select 'R', rngtypid, rngsubtype, rngcollation, rngmultitypid from pg_range where rngtypid >= 16384 order by 2;
"""))
with open(out_dir + "/order.txt", "w") as f:
    for t, values in ORDER.items():
        rows = ", ".join(f"({lit(v)}::{t})" for v in values)
        f.write(run(head + f"select {lit(t)} || e'\\t' || dense_rank() over (order by v) || e'\\t' || esc(format('%s', v)) from (values {rows}) x(v) order by v;"))
