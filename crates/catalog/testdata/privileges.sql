-- Who may do what in the cluster of objects.sql, as the judge says.
select 'table', r.rolname, c.oid, p, has_table_privilege(r.oid, c.oid, p) from pg_authid r, pg_class c,
  unnest(array['SELECT','INSERT','UPDATE','TRUNCATE','SELECT WITH GRANT OPTION']) p
  where c.relkind in ('r','p','v') and (c.relnamespace = 's'::regnamespace or c.relname in ('pg_class','pg_authid','pg_tables','pg_statistic')) and r.rolname not in ('pg_checkpoint');
select 'column', r.rolname, a.attrelid, a.attnum, has_column_privilege(r.oid, a.attrelid, a.attnum, 'SELECT') or has_table_privilege(r.oid, a.attrelid, 'SELECT') from pg_authid r, pg_attribute a where a.attrelid = 's.t'::regclass and attnum > 0;
select 'schema', r.rolname, n.oid, p, has_schema_privilege(r.oid, n.oid, p) from pg_authid r, pg_namespace n, unnest(array['USAGE','CREATE','USAGE WITH GRANT OPTION']) p;
select 'function', r.rolname, f.oid, 'EXECUTE', has_function_privilege(r.oid, f.oid, 'EXECUTE') from pg_authid r, pg_proc f where f.oid::int8 % 17 = 0 or f.pronamespace = 's'::regnamespace;
select 'type', r.rolname, t.oid, 'USAGE', has_type_privilege(r.oid, t.oid, 'USAGE') from pg_authid r, pg_type t where t.typnamespace = 's'::regnamespace;
select 'database', r.rolname, d.oid, p, has_database_privilege(r.oid, d.oid, p) from pg_authid r, pg_database d, unnest(array['CONNECT','CREATE','TEMP']) p;
select 'role', r.rolname, m.oid, p, pg_has_role(r.oid, m.oid, p) from pg_authid r, pg_authid m, unnest(case when current_setting('server_version_num')::int < 160000 then array['USAGE','MEMBER'] else array['USAGE','MEMBER','SET'] end) p;
