#!/bin/bash
# crates/heap/testdata/demo.sh > crates/heap/testdata/demo.txt
# Asks a real PostgreSQL 18 what the tables of fixtures/demo.tar.xz hold: where each lies, its columns, and per column the
# CRC-32C of its values in the order of ctid, each as its output function prints it, NULL as \N, with a newline after each.
# Columns of types that BuiltinTypes does not know are left to the tests of the crates above.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); root=$here/../../..
bin=$("$root/scripts/postgres" 18)
work=$(mktemp -d); chmod 777 "$work"
tar -C "$work" -xJf "$root/fixtures/demo.tar.xz"
if [ "$(id -u)" = 0 ]; then as=(setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp); chown -R nobody:nogroup "$work"; else as=(); fi
chmod 700 "$work/demo"
stop() { "${as[@]}" "$bin/pg_ctl" -D "$work/demo" -m fast -w stop >/dev/null 2>&1 || true; rm -rf "$work"; }
trap stop EXIT
"${as[@]}" "$bin/pg_ctl" -D "$work/demo" -l "$work/log" -o "-p 54931 -k $work -c listen_addresses=''" -w start >/dev/null
psql -X -q -At -h "$work" -p 54931 -U postgres -d demo -v ON_ERROR_STOP=1 <<'SQL'
SET synchronize_seqscans = off; SET lock_timeout = '5s'; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
SET timezone = 'UTC'; SET extra_float_digits = 1; SET bytea_output = 'hex';
WITH wanted AS (
  SELECT c.oid, c.oid::regclass::text AS name, pg_relation_filepath(c.oid) AS path, c.reltoastrelid
  FROM pg_class c
  WHERE c.relkind IN ('r', 'm', 't') AND c.relpersistence = 'p' AND pg_relation_size(c.oid) > 0
    -- not the 100 partitions, and not what a prepared transaction locks
    AND c.relname !~ '^pgbench_accounts_([2-9]|10|[0-9]{2,})$' AND c.relname <> 'prepared_locked'
), cols AS (
  SELECT w.oid, a.attnum, ty.typname ~ '^_?reg|aclitem' OR ty.typtype <> 'b' OR ty.oid >= 16384
      OR (ty.typelem <> 0 AND ty.typlen = -1 AND el.typtype <> 'b') AS skip,
    format('column %s %s %s %s %s %s %s', a.attnum, CASE WHEN a.attisdropped THEN 0 ELSE a.atttypid END, a.attlen, a.attalign,
           CASE WHEN a.attisdropped THEN 'dropped' ELSE 'kept' END, replace(a.attname, ' ', '_'),
           CASE WHEN a.atthasmissing THEN 'missing ' || (a.attmissingval::text::text[])[1] ELSE 'plain' END) AS line
  FROM wanted w JOIN pg_attribute a ON a.attrelid = w.oid AND a.attnum > 0
  LEFT JOIN pg_type ty ON ty.oid = a.atttypid LEFT JOIN pg_type el ON el.oid = ty.typelem
)
SELECT format('SELECT %L; SELECT ''rows '' || count(*) FROM ONLY %s;',
              format('table %s %s %s %s', w.oid, w.path, coalesce(nullif(w.reltoastrelid, 0), 0), replace(w.name, ' ', '_'))
              || coalesce((SELECT string_agg(E'\n' || line, '' ORDER BY attnum) FROM cols WHERE oid = w.oid), ''), w.name)
    || coalesce((SELECT string_agg(format(
         $f$SELECT format('crc %s %%s', crc32c(convert_to(coalesce(string_agg(CASE WHEN %2$s IS NULL THEN '\N' ELSE format('%%s', %2$s) END || E'\n', '' ORDER BY ctid), ''), 'UTF8'))) FROM ONLY %3$s;$f$,
         n.num, quote_ident(n.name), w.name), ' ' ORDER BY n.num DESC)
       FROM (SELECT a.attnum AS num, a.attname AS name FROM pg_attribute a JOIN cols c ON c.oid = a.attrelid AND c.attnum = a.attnum AND NOT c.skip
             WHERE a.attrelid = w.oid AND NOT a.attisdropped AND a.attgenerated <> 'v'
             UNION ALL SELECT -1, 'ctid' UNION ALL SELECT -2, 'xmin' UNION ALL SELECT -3, 'cmin' UNION ALL SELECT -4, 'xmax' UNION ALL SELECT -6, 'tableoid') n), '')
FROM wanted w ORDER BY w.oid \gexec
SQL
