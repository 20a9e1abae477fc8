-- One query a line, compared with PostgreSQL 18 over the demo cluster. See tests/same_answers.rs.
select count(*) from zoo.numbers
select count(*), sum(i2), sum(i4), sum(i8), avg(i4), min(n2), max(n2) from zoo.numbers where id >= 10
select * from zoo.numbers order by id limit 12
select id, t, v, c, q, n, by, bt, vb, u from zoo.texts order by id limit 20
select id, j, jb, x from zoo.texts order by id limit 20
select * from zoo.times order by id limit 20
select * from zoo.nets order by id limit 20
select * from zoo.containers order by id limit 20
select id, before, after, last from zoo.strangers order by id
select p from zoo.strangers
select id, length(compressible), md5(random_), length(plain_ext), md5(b::text), array_length(a,1) from zoo.toasted order by id
select count(*), sum(v), md5(string_agg(pad, ',' order by id)) from zoo.states
select * from zoo.states where id between 85 and 155 order by id
select count(*) from zoo.frozen; 
select count(*), min(id), max(id) from zoo.vacuumed
select count(*) from zoo.emptied
select * from zoo.never_filled
select count(*) from zoo.unlogged
select k, count(*) from zoo.duplicates group by k order by k
select * from zoo.changed order by a
select * from zoo.generated order by a
select count(*) from zoo.no_columns
select * from zoo.by_list order by id, v limit 30
select tableoid::regclass, count(*) from zoo.by_list group by 1 order by 1
select tableoid::regclass, count(*) from zoo.by_range group by 1 order by 1
select tableoid::regclass, count(*) from zoo.by_hash group by 1 order by 1
select * from zoo.by_expr order by a limit 10
select * from zoo.parent order by id
select * from only zoo.parent order by id
select * from zoo.other_parent order by t
select * from zoo.bad_index where k = 5 order by t
select * from zoo.v_plain order by id limit 10
select * from zoo.v_join order by id limit 10
select * from zoo.v_nested order by id limit 10
select * from zoo.v_group order by k
select count(*), sum(id) from zoo.v_union
select size, count(*) from zoo.v_case group by size order by 1
select * from zoo.v_partitions order by k
select * from zoo.mv order by k
select * from zoo.mv_empty
select * from zoo.elsewhere where id = 7
select * from zoo.prepared_rows order by id
select * from zoo.by_list where k = 'a' order by id limit 5
select * from zoo.by_list where k is null order by id limit 5
select count(*) from zoo.by_range where d = '2020-03-03'
select count(*) from zoo.by_hash where id = 17 and t = 'h17'
select count(*) from pgbench_accounts where bid = 0
select count(*) from pgbench_accounts where aid = 777
select abalance from pgbench_accounts where aid = 4242
select n.id, t.t from zoo.numbers n join zoo.texts t on n.id = t.id where n.i4 > 90000 order by 1
select n.id, t.t from zoo.numbers n left join zoo.texts t on n.id = t.id and t.id < 5 where n.id < 10 order by 1
select n.id from zoo.numbers n where exists (select 1 from zoo.texts t where t.id = n.id) order by 1 limit 5
select n.id from zoo.numbers n where n.id not in (select id from zoo.texts where id < 1000) order by 1 limit 5
select id from zoo.numbers union all select id from zoo.texts order by 1 limit 10
select distinct i2 % 7 from zoo.numbers order by 1
select (select max(id) from zoo.numbers), (select min(id) from zoo.texts)
select 1/0
select id from zoo.numbers where id <> 0 and 10/id > 3 order by 1
select case when id > 3 then 1/(id-3) else 0 end from zoo.numbers where id < 6 order by id
select nope from zoo.numbers
select * from nope
select 'abc' || 5, 5::text, '12'::int + 1, 3.14::numeric(10,1), 'x'::varchar(3)
values (1,'a'),(2,'b'),(null,'c')
select * from (values (1),(2)) v(x) where x > 1
select generate_series(1,3)
select * from generate_series(1,3) g
select i4 % 10 as k, count(*), sum(i8), avg(f8) from zoo.numbers group by 1 having count(*) > 1 order by 1
select count(*) from zoo.numbers a, zoo.numbers b where a.i2 = b.i2 and a.id < b.id
select ctid, xmin is not null, id from zoo.frozen where ctid = '(0,3)'
select relname, relkind from pg_class where relnamespace = 'zoo'::regnamespace order by relname
select attname, atttypid::regtype from pg_attribute where attrelid = 'zoo.numbers'::regclass order by attnum
select * from pg_tables where schemaname = 'zoo' order by tablename
select * from information_schema.tables where table_schema='zoo' order by table_name
select count(*) from pg_proc
show server_version
select version() is not null
select current_user, current_database()
select * from zoo.secret
select id, t from zoo.texts where t like 'text 1%' order by id limit 5
select id from zoo.texts where t in ('a', 'text 100', 'nope') order by id
select max(id), min(t) from zoo.texts
select string_agg(t, ',' order by id desc) from zoo.texts where id < 5
select array_agg(id order by id) from zoo.numbers where id < 8
select coalesce(i2, -1), nullif(id, 3), greatest(id, i2), least(id, i2) from zoo.numbers where id < 10 order by id
select i8 + 1 from zoo.numbers where id = 2
select i4 + 1 from zoo.numbers where id = 2
select i2 + 1::int2 from zoo.numbers where id = 2
select i2 * i2 from zoo.numbers where id = 2
select -i8 from zoo.numbers where id = 3
select abs(i4) from zoo.numbers where id = 3
select i4 / i2 from zoo.numbers where id = 1
select n / 0 from zoo.numbers where id = 7
select n2 * n2, n2 + 1, n2 - 0.005, n2 / 3 from zoo.numbers where id in (2, 3, 5, 6, 7, 8) order by id -- ordered
select round(n, 2), trunc(n2, 1), ceil(n2), floor(n2), sign(n2) from zoo.numbers where id between 10 and 30 order by id -- ordered
select sum(n2), avg(n2), min(n2), max(n2), count(n2), stddev(n2), variance(n2) from zoo.numbers where id >= 10
select sum(f4), sum(f8), avg(f8), min(f4), max(f8) from zoo.numbers where id >= 10
select id, f4::text, f8::text, f8::float4, f4::float8 from zoo.numbers where id not in (2, 3) order by id limit 20 -- ordered
select i8::int4 from zoo.numbers where id = 2
select f8::int4 from zoo.numbers where id = 4
select n::int8 from zoo.numbers where id = 4
select n::text, n2::text, n3::text, m::text from zoo.numbers where id < 10 order by id -- ordered
select t::int from zoo.texts where id = 3
select id, t || v, length(t), octet_length(t), upper(t), lower(t), substr(t, 2, 3), position('e' in t) from zoo.texts where id < 12 order by id -- ordered
select id, c || 'x', length(c), c = 'ab', c::text || '|' from zoo.texts where id < 12 order by id -- ordered
select id, t like '%e%', t ilike 'TEXT%', t ~ '^t', t !~* 'X' from zoo.texts where id < 30 order by id -- ordered
select count(*) from zoo.texts where v like 'c%'
select count(*) from zoo.texts where by > '\x80'
select id, bt::text, vb, bt & B'10101' from zoo.texts where id < 9 order by id -- ordered
select count(*) from zoo.texts where u > 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
select id, jb -> 'i', jb ->> 's', jb #> '{arr,0}', j ->> 'i' from zoo.texts where id between 8 and 15 order by id -- ordered
select count(*) from zoo.texts where jb @> '{"i": 100}'
select id, d + 1, d - date '2020-01-01', ts - interval '1 day', tsz + interval '1 month', ts::date, ts::time from zoo.times where id >= 10 order by id limit 20 -- ordered
select id, extract(year from ts), extract(epoch from tsz), date_trunc('month', ts), i * 2 from zoo.times where id >= 10 order by id limit 20 -- ordered
select count(*) from zoo.times where ts between '2020-01-02' and '2020-01-10' and d > '2020-01-05'
select count(*) from zoo.times where i = interval '30 days'
select id, i from zoo.times order by i, id limit 30 -- ordered
select count(*) from zoo.nets where i << '10.0.0.0/8'
select id, host(i), masklen(c), family(i) from zoo.nets where id < 20 order by id -- ordered
select id, ia[1], ia[2:3], array_length(ta, 1), ta @> array['k1'], 3 = any(ia), cardinality(na) from zoo.containers order by id limit 30 -- ordered
select id, e, e > 'ok', e::text from zoo.containers where e is not null order by e, id limit 40 -- ordered
select id, (p).x, (p).y, p = row(1, 'x')::zoo.pair from zoo.containers where p is not null order by id limit 20 -- ordered
select id, lower(r4), upper(r4), isempty(r4), r4 @> 7, r4 && int4range(5, 9) from zoo.containers order by id limit 20 -- ordered
select id from zoo.containers where ia = array[10, 3, null]
select d, count(*) from zoo.containers group by d order by d limit 5 -- ordered
select row(id, e) from zoo.containers order by id limit 3 -- ordered
select n from zoo.numbers n where id = 8
select n.* from zoo.numbers n where n.id = 8
select count(*) from zoo.numbers where i2 is distinct from i4
select count(*) from zoo.numbers where (i2, id) < (500, 100)
select count(*) from zoo.numbers where not b
select count(*) from zoo.numbers where b is not true
select count(*) from zoo.numbers where i4 between 100 and 200 or i8 < 0
select count(*) from zoo.numbers where i4 in (1, 7, 100000, null)
select count(*) from zoo.numbers where i4 not in (1, 7, null)
select count(*) from zoo.numbers where i4 = any ('{1,7,100000}'::int[])
select count(*) from zoo.numbers where id in (select id from zoo.texts where length(v) > 10)
select count(*) from zoo.numbers where id not in (select id from zoo.texts)
select count(*) from zoo.numbers where id > all (select id from zoo.texts where id < 100)
select count(*) from zoo.numbers n where not exists (select 1 from zoo.texts t where t.id = n.id)
select (select count(*) from zoo.frozen), exists (select 1 from zoo.emptied), array(select id from zoo.frozen where id < 5 order by id)
select (select id from zoo.frozen where id < 3)
select count(*) from zoo.numbers a right join zoo.texts b on a.id = b.id + 600
select count(*), count(a.id), count(b.id) from zoo.numbers a full join zoo.texts b on a.id = b.id + 600
select count(*) from zoo.numbers natural join (select id, i2 from zoo.numbers where id < 50) x
select a.id, b.k from zoo.frozen a join zoo.duplicates b using (id) where b.k = 3 order by 1 limit 5 -- ordered
select count(*) from zoo.numbers a cross join zoo.nets b
select count(*) from zoo.numbers a join zoo.numbers b on a.i4 < b.i2 where a.id < 50 and b.id < 50
select a.i2, sum(b.i8) from zoo.numbers a join zoo.numbers b on a.i2 = b.id group by a.i2 having sum(b.i8) > 0 order by 1 limit 10 -- ordered
select id from zoo.frozen where id < 10 union select id from zoo.vacuumed where id < 15 order by 1 -- ordered
select id from zoo.frozen where id < 10 intersect select id from zoo.vacuumed where id between 5 and 15 order by 1 -- ordered
select k from zoo.duplicates where id < 30 except all select id from zoo.frozen where id < 5 order by 1 -- ordered
select id::numeric from zoo.frozen where id < 3 union all select 1.50 order by 1 -- ordered
select distinct on (k) k, t, id from zoo.duplicates order by k, t desc, id -- ordered
select count(distinct t), count(distinct k), sum(distinct k) from zoo.duplicates
select k, count(*) filter (where t = 't1'), string_agg(t, '' order by id) filter (where id < 50) from zoo.duplicates group by k order by k -- ordered
select bool_and(b), bool_or(b), every(b), bit_and(i2), bit_or(i4) from zoo.numbers where id >= 10
select max(t), min(t) from zoo.texts
select id from zoo.numbers order by n nulls first, id limit 20 -- ordered
select id from zoo.numbers order by f8 desc, id limit 20 -- ordered
select id from zoo.texts order by t desc nulls last, id limit 20 offset 3 -- ordered
select id from zoo.numbers order by id limit 3 offset 1195 -- ordered
select id from zoo.numbers limit 0
select id from zoo.numbers limit -1
select 1 where false
select null, 'x', 1, 1.5, true, null::int
select 'a'::text as "Odd Name", 1 as a, 2 as a
select * from zoo.by_list where k in ('a', 'c') and id < 20 order by id -- ordered
select * from zoo.by_list where k = 'zz'
select count(*) from zoo.by_list where k > 'b'
select count(*) from zoo.by_range where d >= '2020-06-01' and d < '2020-07-01'
select count(*) from zoo.by_range where d = '2019-12-31' and id = 213
select count(*) from zoo.by_range where id = 300
select count(*) from zoo.by_hash where id = 5
select count(*) from zoo.by_expr where a % 3 = 0
select tableoid::regclass, * from zoo.by_hash where id < 6 order by id -- ordered
select ctid, xmin = xmin, cmin, xmax, tableoid::regclass, id from zoo.frozen where id < 4 order by id -- ordered
select count(*) from zoo.frozen where ctid < '(1,1)'
select id from zoo.frozen where ctid in ('(0,1)', '(0,7)', '(99,1)') order by id -- ordered
select count(*) from bitmap_uniform where a between 10 and 20 or b < 100
select count(*) from bitmap_linear where a < 50 and b > 300
select a, count(*) from bitmap_cyclic group by a order by 2 desc, 1 limit 1 -- ordered
select sum(a), sum(b) from bitmap_linear_fuzz
select * from bitmap_uniform where a between -33 and 10015 offset 1000000
select * from pgbench_accounts where aid = 12345
select count(*) from pgbench_accounts where aid between 990 and 1010
select relname, relpages > 0 from pg_class where relname like 'pgbench_accounts_1%' order by 1 limit 4 -- ordered
select typname, typlen from pg_type where typname in ('int4', 'text', 'numeric', 'mood') order by 1 -- ordered
select proname, pronargs from pg_proc where proname = 'int4pl'
select conname, contype, pg_typeof(conname) from pg_constraint where conrelid = 'zoo.constrained'::regclass order by 1 -- ordered
select indexrelid::regclass, indisvalid from pg_index where indrelid = 'zoo.bad_index'::regclass order by 1::text
select rolname, rolcanlogin from pg_roles where rolname in ('reader', 'postgres') order by 1 -- ordered
select nspname from pg_namespace where nspname !~ '^pg_' order by 1 -- ordered
select sum(1 / (id - 5)) from zoo.frozen where id < 10
select id / nullif(id - 5, 0) from zoo.frozen where id < 8 order by id -- ordered
select case id when 5 then 1 / 0 else id end from zoo.frozen where id < 5 order by id -- ordered
select id from zoo.frozen where id = 5 and 1 / (id - 5) > 0
select coalesce(id, 1 / 0) from zoo.frozen where id = 1
select true or 1 / (id - id) = 0 from zoo.frozen where id = 1
select missing_function(1)
select id, count(*) from zoo.frozen
select 1 + 'x'
select 'x' < 1
select zoo.frozen.nope from zoo.frozen
select id from zoo.frozen f, zoo.vacuumed v
select * from zoo.frozen where id = 'abc'
select date '2024-02-30'
select 99999999999999999999::int8
select 'abc'::bytea, '\x6'::bytea
select interval 'nonsense'
selec 1
select k, k from zoo.duplicates order by k, id limit 2 -- ordered
select id, -id, id from zoo.frozen order by t limit 2 -- ordered
select count(*), count(*) from zoo.duplicates group by k order by k limit 2 -- ordered
select 1, 1
select null, null
select a.*, a.* from zoo.frozen a where id < 3
select count(*) from zoo.frozen a left join zoo.vacuumed b on a.id = b.id and 1 = 2
select count(*) from zoo.frozen a where exists (select 1 from zoo.vacuumed b where b.id = a.id and false)
select id from zoo.numbers where f8 is not distinct from 'NaN'
select id from zoo.numbers where f4 is distinct from 'NaN' and id < 9
select f8 = 'NaN', count(*) from zoo.numbers group by f8 = 'NaN'
select id from zoo.numbers order by coalesce(f8, 'NaN'::float8), id limit 3 -- ordered
select '1'::text::regclass
select ov, iv from zoo.containers order by id limit 4 -- ordered
select count(*) from pg_roles
select * from zoo.seq
select id from zoo.toasted order by random_ limit 2 -- ordered
select last_value, is_called from zoo.seq
select 1 union select 2.5
select t from (select 1 a, 2 b) t
