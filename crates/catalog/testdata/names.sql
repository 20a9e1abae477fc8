-- psql -XAtq -F $'\t' -f names.sql > names.txt: names as the judge prints them (18.4, a fresh database)
select 'type', oid, oid::regtype from pg_type where oid < 16384;
select 'typmod', t, m, format_type(t, m) from (values (1042,-1),(1042,9),(1043,14),(1043,-1),(1560,-1),(1560,3),(1562,5),(1700,-1),(1700,655366),(1700,(10<<16)+4+2045),
  (1083,3),(1114,0),(1184,6),(1266,2),(1186,-1),(1186,((1<<2)<<16)+65535),(1186,(32767<<16)+3),(1186,((8+1024+2048+4096)<<16)+2),(1015,14),(1231,655366),(1183,3),(2249,-1),(0,-1),(99999,-1),(1009,-1),(23,5),(18,-1),(1002,-1)) v(t,m);
select 'proc', oid, oid::regproc from pg_proc where oid < 16384 and oid::int8 % 7 = 0;
select 'procedure', oid, oid::regprocedure from pg_proc where oid < 16384 and oid::int8 % 11 = 0;
select 'oper', oid, oid::regoper from pg_operator where oid < 16384 and oid::int8 % 3 = 0;
select 'operator', oid, oid::regoperator from pg_operator where oid < 16384 and oid::int8 % 3 = 0;
select 'class', oid, oid::regclass from pg_class where oid < 16384 and relnamespace in (11, 99) and oid::int8 % 3 = 0;
select 'class', oid, oid::regclass from pg_class where relnamespace = 'information_schema'::regnamespace and relname like 'c%';
select 'collation', oid, oid::regcollation from pg_collation where oid < 12000;
select 'namespace', oid, oid::regnamespace from pg_namespace where oid < 16384;
select 'role', oid, oid::regrole from pg_roles where oid < 16384;
select 'config', oid, oid::regconfig from pg_ts_config;
select 'dictionary', oid, oid::regdictionary from pg_ts_dict;
select 'opclass', t.oid, am, c.oid from pg_type t, (values (403),(405)) v(am), lateral (select o.oid from pg_opclass o where o.opcmethod = am and o.opcdefault and o.opcintype = t.oid) c where t.oid < 16384;
