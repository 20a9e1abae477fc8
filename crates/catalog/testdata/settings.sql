-- psql -XAtq -F $'\t' -f settings.sql > ../src/settings/table.tsv: the settings of PostgreSQL 18 as pg_settings shows them
select name, context, vartype, coalesce(unit,''), coalesce(min_val,''), coalesce(max_val,''),
  case name when 'data_directory' then '' when 'config_file' then '' when 'hba_file' then '' when 'ident_file' then ''
  when 'lc_messages' then '' when 'TimeZone' then 'GMT' when 'log_timezone' then 'GMT' when 'server_version' then '18.4' when 'server_encoding' then 'UTF8' when 'client_encoding' then 'UTF8'
  when 'application_name' then '' when 'search_path' then '"$user", public' when 'data_checksums' then 'off' when 'debug_assertions' then 'off'
  else coalesce(boot_val,'') end,
  coalesce(array_to_string(enumvals, ','),''), category, short_desc, coalesce(extra_desc,''), coalesce((select string_agg(f, ',') from unnest(pg_settings_get_flags(name)) f),'')
from pg_settings order by name collate "C";
