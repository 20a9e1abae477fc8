#!/bin/bash
# Dumps the judge's database "plan" for the planner's tests.
D=${1:-/work/cache/plan/dump}; mkdir -p $D
P="psql -h /tmp -p 5418 -U postgres -qAt plan"
for f in /work/cache/catdump-oid/*.csv; do
  t=$(basename $f .csv)
  cols=$($P -c "select string_agg(case when a.atttypid='regproc'::regtype then quote_ident(attname)||'::oid as '||quote_ident(attname) when a.atttypid='anyarray'::regtype then quote_ident(attname)||'::text as '||quote_ident(attname) else quote_ident(attname) end, ',' order by attnum) from pg_attribute a where attrelid='pg_catalog.$t'::regclass and attnum>0 and not attisdropped")
  if [ $t = pg_statistic ]; then cols="$cols, pg_typeof(stavalues1)::oid vt1, pg_typeof(stavalues2)::oid vt2"; cols=$($P -c "select string_agg(case when a.atttypid='anyarray'::regtype then attname||'::text as '||attname else attname end, ',' order by attnum) from pg_attribute a where attrelid='pg_statistic'::regclass and attnum>0")
  fi
  $P -c "copy (select $cols from pg_catalog.$t) to stdout with (format csv, header)" > $D/$t.csv
done
$P -c "copy (select c.oid, pg_relation_size(c.oid)/8192 from pg_class c where relkind in ('r','i','t','m','S')) to stdout with (format csv)" > $D/blocks.csv
$P -c "copy (select c.oid, (bt_metap(c.oid::regclass::text)).fastlevel, pg_get_indexdef(c.oid,1,true), i.indrelid::regclass from pg_class c join pg_index i on i.indexrelid=c.oid join pg_am a on a.oid=c.relam where c.relkind='i' and amname='btree' and c.relnamespace='public'::regnamespace) to stdout with (format csv)" > $D/heights.csv
: > $D/endpoints.csv
while IFS='|' read oid expr rel; do
  $P -c "copy (select $oid, (select min($expr) from $rel), (select max($expr) from $rel)) to stdout with (format csv)" >> $D/endpoints.csv
done < <($P -c "select c.oid, pg_get_indexdef(c.oid,1,true), i.indrelid::regclass from pg_class c join pg_index i on i.indexrelid=c.oid where c.relkind='i' and i.indpred is null and c.relnamespace='public'::regnamespace and pg_get_indexdef(c.oid,1,true) !~ 'ok'")
