#!/usr/bin/env python3
"""Asks a real server how dates, times and intervals read, print, send, hash and order.

usage: generate-datetime.py DIRECTORY PSQL...

writes DIRECTORY/datetime.txt        `# TimeZone|DateStyle|IntervalStyle` before the lines it holds for:
                                     type TAB typmod TAB input TAB `=text TAB binary in hex TAB hash(0) TAB hash(42)`
                                     or `!SQLSTATE message TAB hint`
       DIRECTORY/datetime-order.txt  type TAB rank TAB text
"""
import random
import subprocess
import sys

out_dir, psql = sys.argv[1], sys.argv[2:]
SETUP = r"""
create or replace function esc(t text) returns text language sql as $f$
  select replace(replace(replace(t, '\', '\\'), e'\t', '\t'), e'\n', '\n') $f$;
create or replace function probe(t text, m int, i text) returns text language plpgsql as $f$
declare v text; b text; h0 text; h1 text; s text; msg text; hint text; e text; h text;
begin
  select h.h into h from (values ('date','hashdateextended'),('time','time_hash_extended'),('timetz','timetz_hash_extended'),
    ('timestamp','timestamp_hash_extended'),('timestamptz','timestamptz_hash_extended'),('interval','interval_hash_extended')) h(t,h) where h.t = probe.t;
  if t = 'date' then e := format('date_in(%L::cstring)', i); else e := format('%s_in(%L::cstring, 0, %s)', t, i, m); end if;
  execute format('select format(''%%s'', x), encode(%s_send(x), ''hex''), %s(x, 0), %s(x, 42) from (select %s as x) y', t, h, h, e) into v, b, h0, h1;
  return '=' || esc(v) || e'\t' || b || e'\t' || h0 || e'\t' || h1;
exception when others then
  get stacked diagnostics s = returned_sqlstate, msg = message_text, hint = pg_exception_hint;
  return '!' || s || ' ' || esc(msg) || e'\t' || esc(hint);
end $f$;
"""
DATES = """1999-01-08|January 8, 1999|1/8/1999|1/18/1999|01/02/03|1999-Jan-08|Jan-08-1999|08-Jan-1999|99-Jan-08|08-Jan-99|Jan-08-99|19990108|990108|1999.008|J2451187|January 8, 99 BC
2000-02-29|2001-02-29|1900-02-29|2000-02-30|2000-13-01|2000-00-10|2000-10-00|0000-01-01|0001-01-01|0001-01-01 BC|4714-11-24 BC|4714-11-23 BC|4713-01-01 BC|5874897-12-31|5874898-01-01|294276-12-31|294277-01-01|99999999-01-01
infinity|-infinity|+infinity|epoch| infinity |Infinity|INFINITY|infinit|epoch 1|infinity infinity|inf|
1997.038|97038|1997038|2024-366|2023-366|2024 366|2024-060|1999 Jan 08|8 Jan 1999|Jan 8 1999|8-1-1999|8/1/99|13/1/99|1-13-99|31.12.1999|1.2.2003|12.31.1999|1999/12/31|1999/1/1|20001231|001231|70-01-01|69-12-31|00-01-01|0-1-1|100-1-1|10000-01-01|1-1-1|5-5-5
Mon Jan 08 1999|Friday January 8 1999|monday|Jan 1999|Jan|1999|1999-01|99|today|2000-01-01 10:00|2000-01-01 25:00|2000-01-01 00:00:60|2000-01-01T10:00:00Z|2000-01-01 AD|44 BC|2000-01-01 bc|0044-03-15 BC|Jan 1 44 BC
2000-01-01 foo|foo|2000-01-01 UTC|2000-01-01 +05|2000--01-01|2000-01-01-|-2000-01-01|+2000-01-01|2000-01|2000-1-1 1|J0|J1|J2147483647|J2147483648|J-1|julian 2451187|jd 2451187.5|J 2451187 10:00|J2451187-08|(2000-01-01)|[2000,01,01]|2000 01 01|01 02 2003|1 Feb 2003|1 février 2003|2000-01-01,|"2000-01-01"|2000_01_01
sept 5 2020|5 sept 2020|september 5 2020|thurs 1 jan 2015|dec-25-95|25-dec-1995|1995-dec-25|25dec1995|dec251995|1995dec25|y2000 m12 d31|2000 12|200012|2000123|20001301|1.5.99|1.5|.5|1999.|1999.5|1999.0|1999.365|1999.366|2000.366|2000.367""".replace("\n", "|").split("|")
STAMPS = """2004-10-19 10:23:54|2004-10-19 10:23:54.123456|2004-10-19 10:23:54.1234565|2004-10-19 10:23:54.1234567|2004-10-19 10:23:54.9999999|2004-10-19 23:59:59.9999999|2004-10-19 24:00:00|2004-10-19 24:00:01|2004-10-19 23:59:60|2004-10-19 23:59:61|2004-10-19 10:23:60|2004-10-19 10:60|2004-10-19 1:2:3|2004-10-19 10|2004-10-19 1023|2004-10-19 102354|2004-10-19 102354.5|2004-10-19T10:23:54|20041019T102354|20041019 102354|20041019102354|20041019T102354-05|20041019T102354.5-0530|2004-10-19T|T10:00|2004-10-19 T10|2004-10-19 t 1023
2004-10-19 10:23:54+02|2004-10-19 10:23:54+02:30|2004-10-19 10:23:54-0230|2004-10-19 10:23:54+02:30:15|2004-10-19 10:23:54 -8|2004-10-19 10:23:54+15:59:59|2004-10-19 10:23:54+16|2004-10-19 10:23:54-15:59|2004-10-19 10:23:54+2|2004-10-19 10:23:54+230|2004-10-19 10:23:54+99999999999|2004-10-19 10:23:54+1:99|2004-10-19 10:23:54+1:00:99|2004-10-19 10:23:54Z|2004-10-19 10:23:54 z|2004-10-19 10:23:54 UTC|2004-10-19 10:23:54 PST|2004-10-19 10:23:54 pdt|2004-10-19 10:23:54 EST|2004-10-19 10:23:54 CEST|2004-10-19 10:23:54 MSK|2014-10-26 01:30 MSK|2009-07-01 12:00 MSK|2009-07-01 12:00 MSD|2004-10-19 10:23:54 America/New_York|2004-07-04 10:23:54 america/new_york|2004-07-04 10:23:54 Europe/Berlin|2004-07-04 10:23:54 Asia/Kolkata|2004-07-04 10:23:54 Nowhere/Town|2004-07-04 10:23:54 Foo|2004-07-04 10:23:54 EST5EDT|2004-07-04 10:23:54 GMT+3|2004-07-04 10:23:54 utc-3|2004-07-04 10:23:54 foo+3|2004-07-04 10:23:54 foo/bar1|2004-07-04 10:23:54 Etc/GMT+5|2004-07-04 10:23:54 UCT|2004-07-04 10:23:54 zulu|2004-07-04 10:23:54 Japan|2004-07-04 10:23:54 LMT|2004-07-04 10:23:54 MET DST|2004-07-04 10:23:54 MET|2004-07-04 10:23:54 DST|2004-07-04 10:23:54 EST DST|2004-07-04 10:23:54 IST|2004-07-04 10:23:54 VET|2016-07-04 10:23:54 VET|2004-07-04 10:23:54 EETDST|2004-07-04 10:23:54 BRST
2024-03-10 02:30 America/New_York|2024-03-10 01:59:59 America/New_York|2024-03-10 03:00 America/New_York|2024-11-03 01:30 America/New_York|2024-11-03 01:30 EDT|2024-11-03 01:30 EST|2024-11-03 00:59 America/New_York|2024-11-03 02:00 America/New_York|2024-03-31 02:30 Europe/Berlin|2024-10-27 02:30 Europe/Berlin|2014-10-26 01:30 Europe/Moscow|2011-12-30 12:00 Pacific/Apia|1883-11-18 12:00 America/New_York|1800-01-01 00:00 Europe/Amsterdam|1900-01-01 00:00 Europe/Amsterdam|1937-06-30 00:00 Europe/Amsterdam|1942-01-01 00:00 Europe/Paris|1945-08-15 12:00 America/New_York|2100-07-01 12:00 America/New_York|9999-07-01 12:00 America/New_York|12345-07-01 12:00 America/New_York|20000-01-01 12:00 Europe/Berlin|200000-07-15 12:00 Europe/Berlin|294276-07-15 12:00 America/New_York|2024-06-01 Africa/Casablanca|2024-03-20 12:00 Africa/Casablanca|1955-01-01 Europe/Dublin|1970-01-01 Europe/Dublin|2024-01-01 Europe/Dublin|2024-04-07 02:15 Australia/Lord_Howe
2004-10-19 10:23:54 PM|2004-10-19 10:23:54 AM|2004-10-19 12:00 am|2004-10-19 12:00 pm|2004-10-19 13:00 pm|2004-10-19 0:30 pm|2004-10-19 04:05:06.789-8|Mon Oct 19 10:23:54 2004|Mon Oct 19 10:23:54 2004 PST|Mon Oct 19 10:23:54 PST 2004|Oct 19 10:23:54 2004 BC|10/19/2004 10:23:54|19/10/2004 10:23:54|19.10.2004 10:23:54|10:23:54 2004-10-19|2004-10-19 at 10:23|2004-10-19 allballs|allballs|10:23|J2451187 10:23|J2451187.5|J2451187T10:23|0044-03-15 12:00 BC|4714-11-24 00:00 BC|4714-11-23 23:59:59 BC|294276-12-31 23:59:59.999999|294277-01-01|294276-12-31 23:59:59.9999999|infinity|-infinity|epoch|infinity 10:00|epoch UTC|nonsense|2004-10-19 10:23:54 10:23|2004-10-19 2004-10-19|2004-10-19 10:23.5|2004-10-19 10:23:54.|2004-10-19 10:23:54.5.5|2004-10-19 10:23:54,5|2004-10-19 10::23|2004-10-19 :10:23|2004-10-19 10-23-54|  2004-10-19   10:23:54  |2004-10-19\n10:23|4714-11-24 00:00 BC +01|4714-11-24 00:00 BC -01|294276-12-31 23:59:59 -05|1-1-1 1:1:1|2004-10-19 99999999999:00|2004-10-19 999999|2004-10-19 25:00:00+00|2004-10-19 -05|2004-10-19 10:23:54 +05 UTC|now now|Saturn 1|2004-10-19 10:23:54 america/|2004-10-19 10:23:54 ../etc/passwd|2004-10-19 10:23:54 A|2004-10-19 10:23:54 posix/UTC|2004-10-19 10:23:54 <x>3|2004-10-19 10:23:54 EST5EDT,M3.2.0,M11.1.0|2004-10-19 é""".replace("\\n", "\x01").replace("\n", "|").replace("\x01", "\n").split("|")
STAMPS += ["2004-10-19 10:23:54 " + " " * 100, "2004-10-19 " + "0" * 120 + "10:00", "1 " * 25, "1 " * 26, "2004-10-19 10:23:54." + "1" * 130]
TIMES = """04:05:06.789|04:05:06|04:05|040506|0405|04|4|4.5|040506.5|4:5:6|04:05 AM|04:05 PM|12:00 am|12:00 pm|13:00 pm|24:00:00|24:00:01|23:59:60|23:59:59.9999999|00:00:00.0000005|00:00:00.0000015|23:60|25:00|allballs|zulu|now now|t 040506|T04:05|T0405|t040506|04:05:06-08|04:05:06.789-8|04:05:06 -08:00|04:05-08:00|040506-08|040506+0830|040506.123-08|040506+07:30:15|04:05:06 PST|04:05:06 CEST|04:05:06 UTC|04:05:06Z|04:05:06 z|04:05:06 America/New_York|2003-04-12 04:05:06 America/New_York|2003-12-12 04:05:06 America/New_York|04:05:06 Asia/Tokyo|04:05:06 Etc/GMT+5|04:05:06 UCT|04:05:06 foo|04:05:06 Nowhere/Town|2003-04-12 04:05:06|2003-04-12 04:05:06 MSK|2003-04-12 04:05 PST|04:05:06 2003-04-12|Jan 1|2003-04-12|1999.008 04:05|04:05:06 2003|infinity|epoch|today|04:05:06+16|04:05:06-15:59:59|04:05:06 DST|04:05:06 EST DST|04:05:06 MET DST|123|12345|1234567|1.5|12.5|123.5|1234.5|12345.5|-04:05|+04:05|04:05:06.1234567|04:05:06.|04:05:06.x|04::06|4 pm|4pm|4 am|J2451187 04:05|04:05 J2451187|04:05 BC|2003-04-12 BC 04:05|| |x|04:05 04:05|mon 04:05|10 h|15:36:39 m2|15:36:39 Japan|2003-13-12 04:05 America/New_York""".split("|")
INTERVALS = """1 year 2 mons|1-2|1 year|1 mon|1 day|1 week|2 weeks 3 days|1 year 2 months 3 days 4 hours 5 minutes 6 seconds|1-2 3 4:05:06|P1Y2M3DT4H5M6S|P0001-02-03T04:05:06|P0001-02-03|P00010203|P00010203T040506|PT040506|PT04:05:06|PT4|PT4:5|P1|P1-2|P1W|P1.5Y|P1.5M|P1.5W|P1.5D|PT1.5H|PT1.5M|PT1.5S|P|PT|P1|P1YT|P-1Y-2M|P1Y-2M3DT-4H|P1YM|P1Z|PT1D|P1H|p1y|P1Y1Y|PT1e3S|PT-0.5S|P1e16Y|P1e400Y|PTinfS|P1e-400Y|P1e-310Y|P1Y2|P1Y00010203
@ 1 minute ago|@ 1 year 2 mons|1 year 2 mons ago|-1 year +2 mons|1 day -1 hour|-1 day 1:00:00|-1 day -1:00:00|-1 1:00:00|1 1:00:00|+1 -1:00:00|1:00:00|-1:00:00|+1:00|1:2:3.456|100:00:00|999999999:00:00|2562047788:00:54.775807|2562047788:00:54.775808|-2562047788:00:54.775807|-2562047788:00:54.775808|2562047789:00|1:60|1:00:60|1:00:61|1|1.5|-1.5|.5|-.5|1.|1.5.5|1 2|1 2:03|1 2 3|30 1:00:00|0|0 days|1 millennium 2 centuries 3 decades|1.5 millennium|1.5 centuries|1.5 decades|1.5 years|1.04 years|1.5 months|1.51 months|1.5 weeks|1.5 days|1.5 hours|1.5 minutes|1.5 seconds|1.5 ms|1.5 us|1.6 us|1500 milliseconds|1500 microseconds|1 microsecond|1 millisecond|1 msec|1 usec|1 c|1 mil|1 dec|1 qtr|1 quarter|1 h 2 m 3 s|1h2m3s|1h 2m 3s|1y 2mon|1 yr 2 hrs|5 secs|1 minute 30.5 sec|1:30 hours|1 day 2 days|1 hour 1:00|1 second 1 ms|1.5 second 1 ms|ago|1 ago|1 day ago ago|ago 1 day|day|1 day day|1 foo|foo|now|today|epoch||  |@|@ 0|infinity|-infinity|+infinity|infinity ago|1 day infinity|infinity 1 day|at infinity|INFINITY|- 1 day|1 day-2 hours|1 day +2 hours
178956970 years|178956971 years|-178956970 years|-178956971 years|2147483647 mons|2147483648 mons|-2147483648 mons|-2147483649 mons|2147483647 days|2147483648 days|-2147483648 days|2147483647 years|178956970 years 7 mons|178956970 years 8 mons|178956970 years 8 mons -1 mon|-178956970 years -8 mons|2147483647 weeks|9223372036854775807 us|9223372036854775808 us|-9223372036854775808 us|9223372036854775807 ms|9223372036854 s|9223372036855 s|99999999999999999999 s|-2147483648 months -2147483648 days -9223372036854775808 us|2147483647 months 2147483647 days 9223372036854775807 us|-9223372036854775808 us ago|-2147483648 days ago|1-11|1-12|1-99|-1-2|+1-2|1--2|1-2-3|1-2.5|1-2 3|-1-2 3 4:05:06|-1-2 -3 -4:05:06|1-2 -3|3 4:05:06|-3 4:05:06|-3 -4:05:06|-1 year 3 days|1 year -3 days 4:05:06|-1 mon 1 day -1 sec|-0.5 sec|-1.000001 sec|1.000001 sec|59.999999 sec|-0.000001 sec|1 year 1 sec|2 years 1 mon 1 day 1:01:01|1 mon -1 day|-1 year -1 mon|0.1 mon|0.01 year|0.99999 year|0.33333 day|1e3 days|1x|1,000 days|1 day, 2 hours|1 day; 2 hours|0.0000001 sec|0.0000005 sec|0.0000006 sec|-0.0000006 sec|0.99999999 sec|1.1 years 1.1 mons|3.5 mons 2.25 days|1 2 days|-5 days ago|+5 days ago|1 mon 2 days 10:00 ago|J2 days|t 10:00|1 d|1 w|1 m|5 min|5 mins|1 y 1 m|1 century|1 decade""".replace("\n", "|").split("|")
ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns", "Europe/Dublin", "Asia/Tehran", "Pacific/Apia", "Africa/Monrovia"]
STYLES = ["ISO, MDY", "ISO, DMY", "ISO, YMD", "SQL, MDY", "SQL, DMY", "Postgres, MDY", "Postgres, DMY", "German, DMY"]
ISTYLES = ["postgres", "postgres_verbose", "sql_standard", "iso_8601"]
rng = random.Random(18)
MOMENTS = ["2004-10-19 10:23:54+00", "1850-01-01 00:00:00+00", "0044-03-15 12:00:00+00 BC", "4714-11-24 12:00:00+00 BC", "1969-12-31 23:59:59.5+00", "2024-03-10 06:59:59.999999+00", "2024-03-10 07:00:00+00", "2024-11-03 05:30:00+00",
           "2024-11-03 06:30:00+00", "9999-12-31 23:59:59+00", "10000-07-01 00:00:00+00", "123456-07-01 00:00:00+00", "294276-12-31 23:00:00+00", "1900-06-01 12:00:00.000001+00", "0001-01-01 00:00:00+00", "infinity", "-infinity", "2024-03-31 01:00:00+00", "2024-10-27 00:30:00+00", "2011-12-30 10:00:00+00", "1972-01-07 00:44:30+00", "1945-05-24 02:00:00+00", "2023-09-01 12:00+00"]
MOMENTS += [f"{rng.randint(1800, 2100):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}.{rng.randint(0, 999999):06}+00" for _ in range(40)]
WALLS = [m.replace("+00", "") for m in MOMENTS]
RANGE = {"year": 4, "month": 2, "day": 8, "hour": 1024, "minute": 2048, "second": 4096}
CASES = []  # (zone, style, istyle, type, typmod, input)
for t, inputs in [("date", DATES), ("timestamp", DATES + STAMPS), ("timestamptz", DATES + STAMPS), ("time", TIMES), ("timetz", TIMES)]:
    CASES += [("UTC", "ISO, MDY", "postgres", t, -1, i) for i in inputs if not i.startswith("today") and not (t != "date" and i.startswith("today"))]
for z in ["America/New_York", "Europe/Moscow"]:
    CASES += [(z, "ISO, MDY", "postgres", "timestamptz", -1, i) for i in STAMPS]
for z in ["Asia/Tokyo"]:
    CASES += [(z, "ISO, MDY", "postgres", "timetz", -1, i) for i in TIMES]
for s in ["ISO, DMY", "ISO, YMD"]:
    CASES += [("UTC", s, "postgres", t, -1, i) for t in ["date", "timestamp"] for i in DATES if not i.startswith("today")]
for s in STYLES:
    for z in ZONES:
        CASES += [(z, s, "postgres", "timestamptz", -1, i) for i in MOMENTS + WALLS]
    CASES += [("UTC", s, "postgres", t, -1, i) for t in ["timestamp", "date"] for i in WALLS]
for i in ["postgres", "postgres_verbose", "sql_standard", "iso_8601"]:
    CASES += [("UTC", "ISO, MDY", i, "interval", -1, x) for x in INTERVALS]
MASKS = [4, 2, 8, 1024, 2048, 4096, 6, 8 | 1024, 8 | 1024 | 2048, 8 | 1024 | 2048 | 4096, 1024 | 2048, 1024 | 2048 | 4096, 2048 | 4096]
for m in MASKS:
    CASES += [("UTC", "ISO, MDY", "postgres", "interval", m << 16 | 0xffff, x) for x in ["1", "1.7", "1-2", "1 2:03", "1:02", "1:02:03.7", "1:02.7", "-1 2", "1 year 2 mons 3 days 4:05:06.7", "-1 year -2 mons -3 days -4:05:06.7", "infinity", "5 days", "1 2:03:04"]]
for p in range(0, 7):
    CASES += [("UTC", "ISO, MDY", "postgres", "interval", 0x7fff << 16 | p, x) for x in ["1.123456 sec", "-1.123456 sec", "0.5 sec", "-0.5 sec", "59.999999 sec", "2562047788:00:54.775807", "-2562047788:00:54.775808", "infinity"]]
    CASES += [("UTC", "ISO, MDY", "postgres", t, p, x) for t in ["timestamp", "timestamptz"] for x in ["2004-10-19 10:23:54.123456", "2004-10-19 10:23:54.987654", "1999-12-31 23:59:59.5", "1999-12-31 23:59:59.499999", "1900-01-01 00:00:00.555555", "1900-01-01 00:00:00.5", "294276-12-31 23:59:59.999999", "infinity"]]
    CASES += [("UTC", "ISO, MDY", "postgres", t, p, x) for t in ["time", "timetz"] for x in ["10:23:54.123456", "10:23:54.987654", "23:59:59.999999", "23:59:59.5", "00:00:00.5"]]
ORDER = {
    "date": ["-infinity", "4714-11-24 BC", "0001-01-01", "1999-12-31", "2000-01-01", "5874897-12-31", "infinity"],
    "time": ["00:00", "00:00:00.000001", "12:00", "24:00"],
    "timestamp": ["-infinity", "4714-11-24 BC", "1999-12-31 23:59:59.999999", "2000-01-01", "294276-12-31", "infinity"],
    "timestamptz": ["-infinity", "4714-11-24 BC", "1999-12-31 23:59:59.999999", "2000-01-01", "2000-01-01 01:00+01", "2000-01-01 01:00-01", "294276-12-31", "infinity"],
    "timetz": ["00:00+00", "00:00+15", "24:00-15", "12:00+00", "13:00+01", "11:00-01", "12:00:00.000001+00", "00:00-15:59"],
    "interval": ["infinity", "-infinity", "1 mon", "30 days", "29 days 24:00", "720:00", "1 day", "24:00", "23:59:59.999999", "0", "-1 day", "-24:00", "-1 mon 30 days", "1 year", "360 days", "365 days", "178956970 years", "-178956970 years", "2147483647 days", "9223372036854775807 us", "-9223372036854775808 us", "1 us", "-1 us"],
}


def lit(s):
    return "'" + s.replace("'", "''") + "'"


def esc(s):
    return s.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def run(sql):
    return subprocess.run(psql + ["-q", "-v", "ON_ERROR_STOP=1"], input=sql, capture_output=True, text=True, check=True).stdout


run(SETUP)
groups = {}
for z, s, i, t, m, x in CASES:
    groups.setdefault((z, s, i), []).append((t, m, x))
sql = "set standard_conforming_strings = on;\n"
for (z, s, i), rows in groups.items():
    sql += f"set timezone = {lit(z)}; set datestyle = {lit(s)}; set intervalstyle = {lit(i)};\n"
    sql += "".join(f"select probe({lit(t)}, {m}, {lit(x)});\n" for t, m, x in rows)
answers = iter(run(sql).split("\n"))
with open(out_dir + "/datetime.txt", "w") as f:
    for (z, s, i), rows in groups.items():
        f.write(f"# {z}|{s}|{i}\n")
        for t, m, x in rows:
            f.write(f"{t}\t{m}\t{esc(x)}\t{next(answers)}\n")
with open(out_dir + "/datetime-order.txt", "w") as f:
    for t, values in ORDER.items():
        rows = ", ".join(f"({lit(v)})" for v in values)
        f.write(run(f"select {lit(t)} || e'\\t' || dense_rank() over (order by v::{t}) || e'\\t' || v from (values {rows}) x(v) order by v::{t}, v;"))
