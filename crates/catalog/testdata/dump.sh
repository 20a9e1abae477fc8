#!/bin/bash
# dump.sh OUTDIR [psql arguments]: every catalog of a running server as CSV with a header. Columns of type regproc are
# printed as OIDs, timestamps as microseconds since 2000, anyarray not at all.
set -euo pipefail
out=$1; shift
mkdir -p "$out"
ask() { psql "$@" -XqAt -v ON_ERROR_STOP=1; }
ask "$@" > "$out/copy.sql" <<'SQL'
select format('copy (select %s from %s order by 1) to %L with (format csv, header);',
  string_agg(case atttypid::regtype::text when 'regproc' then format('%1$I::oid', attname)
    when 'anyarray' then format('null::text as %I', attname)
    when 'timestamp with time zone' then format('(extract(epoch from %1$I - ''2000-01-01 00:00+00'') * 1000000)::int8 as %1$I', attname)
    else quote_ident(attname) end, ',' order by attnum), relname, '@OUT@/' || relname || '.csv')
from pg_class c join pg_attribute a on a.attrelid = c.oid
where relnamespace = 11 and relkind = 'r' and attnum > 0 and not attisdropped
  and relname not in ('pg_depend','pg_description','pg_shdescription','pg_shdepend','pg_init_privs','pg_largeobject')
group by relname order by relname;
SQL
sed -e "s|^copy|\\\\copy|; s|'@OUT@/\([a-z_]*\).csv'|'$out/\1.csv'|; s|;\$||" "$out/copy.sql" | psql "$@" -XqAt -v ON_ERROR_STOP=1
rm "$out/copy.sql"
