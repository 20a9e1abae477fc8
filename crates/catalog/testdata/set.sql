-- psql -XAtq -F $'\t' -f set.sql > set.txt: what the judge makes of SET name = value: what SHOW shows, or the error
create function pg_temp.try(n text, v text) returns text language plpgsql as $$
declare h text; begin perform set_config(n, v, true); return current_setting(n); exception when others then get stacked diagnostics h = pg_exception_hint; return sqlstate || ' ' || sqlerrm || case when h <> '' then ' HINT ' || h else '' end; end $$;
select n, v, pg_temp.try(n, v) from (values
('work_mem','64kB'),('work_mem','64MB'),('work_mem','1'),('work_mem','1.5GB'),('work_mem','100'),('work_mem','0x100'),('work_mem','010000'),('work_mem','1e5'),('work_mem','64 MB'),('work_mem','64mb'),('work_mem','64xx'),('work_mem','abc'),('work_mem',''),('work_mem','99999999999'),('work_mem','3TB'),('work_mem','1000B'),('work_mem','100000B'),('work_mem','-1'),('work_mem','65.4'),('work_mem','64.7kB'),('work_mem',' 128 '),
('statement_timeout','1min'),('statement_timeout','1500'),('statement_timeout','1.5s'),('statement_timeout','90s'),('statement_timeout','2h'),('statement_timeout','1d'),('statement_timeout','100us'),('statement_timeout','900us'),('statement_timeout','0'),('statement_timeout','1 minute'),
('enable_seqscan','on'),('enable_seqscan','OFF'),('enable_seqscan','tru'),('enable_seqscan','y'),('enable_seqscan','o'),('enable_seqscan','of'),('enable_seqscan','0'),('enable_seqscan','2'),('enable_seqscan','maybe'),('enable_seqscan',''),
('random_page_cost','1.1'),('random_page_cost','-1'),('random_page_cost','abc'),('random_page_cost','1e3'),('random_page_cost','1e400'),('random_page_cost','nan'),('random_page_cost','0x10'),('random_page_cost','4kB'),('random_page_cost','0.123456789'),
('vacuum_cost_delay','2ms'),('vacuum_cost_delay','0.5'),('vacuum_cost_delay','500us'),('vacuum_cost_delay','1s'),
('geqo_seed','0.5'),('geqo_seed','2'),
('synchronous_commit','TRUE'),('synchronous_commit','remote_apply'),('synchronous_commit','bogus'),('constraint_exclusion','yes'),('constraint_exclusion','partition'),('client_min_messages','debug'),('client_min_messages','WARNING'),('client_min_messages','info'),('bytea_output','Escape'),('IntervalStyle','iso_8601'),('intervalstyle','x'),('backslash_quote','1'),('default_transaction_isolation','serializable'),('default_transaction_isolation','Repeatable Read'),
('datestyle','iso'),('DateStyle','German'),('DateStyle','SQL, DMY'),('DateStyle','ymd'),('DateStyle','european'),('DateStyle','us'),('DateStyle','noneuro'),('DateStyle','bogus'),('DateStyle','iso,sql'),('DateStyle','mdy,dmy'),('DateStyle','postgres, default'),('DateStyle','default'),('DateStyle',''),('DateStyle','iso,'),
('timezone','UTC'),('TimeZone','europe/berlin'),('TimeZone','Nowhere/Land'),('TimeZone','GMT'),
('search_path','a, b'),('search_path','"$user", public'),('search_path','a b'),('search_path',''),
('client_encoding','utf-8'),('client_encoding','UNICODE'),('client_encoding','sql_ascii'),('client_encoding','bogus'),('client_encoding','LATIN1'),
('extra_float_digits','3'),('extra_float_digits','-15'),('extra_float_digits','4'),('extra_float_digits','-16'),
('effective_io_concurrency','100'),('effective_io_concurrency','2000'),('io_combine_limit','128kB'),('io_combine_limit','16'),('io_combine_limit','0'),
('effective_cache_size','4GB'),('effective_cache_size','100'),('min_parallel_table_scan_size','8MB'),('temp_buffers','800'),
('nosuch','1'),('foo.bar','x'),('foo.1bar','x'),('foo.','x'),('server_version','1'),('max_connections','5'),('autovacuum','off'),('log_connections','on'),('application_name','psql é'),('block_size','1'),
('hash_mem_multiplier','1.5'),('hash_mem_multiplier','0.5'),('cpu_tuple_cost','0.01'),('jit_above_cost','100000'),('jit_above_cost','1e10'),('from_collapse_limit','1'),('from_collapse_limit','0'),('plan_cache_mode','force_generic_plan'),('log_min_duration_statement','-1'),('log_min_duration_statement','-5'),('parallel_setup_cost','1000'),('debug_parallel_query','regress'),('debug_parallel_query','on'),('cursor_tuple_fraction','0.1'),('lock_timeout','1.2345s'),('idle_session_timeout','25h'),('log_rotation_age','1d'),('unix_socket_permissions','0700')
) x(n,v);
