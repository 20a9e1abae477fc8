-- One query a line, compared with PostgreSQL 18 over the tables of fixtures/fresh.sql. See tests/same_answers.rs.
set search_path = fresh, public
set default_transaction_read_only = on
-- joins
select c.id, o.id from customers c join orders o on o.customer = c.id where c.region = 'N' and o.due is null and o.id < 400
select c.name, count(o.id) from customers c left join orders o on o.customer = c.id and o.status = 's' and o.id < 100 where c.id < 60 group by c.name order by 2 desc, 1 -- ordered
select p.sku, q.sku, q.title from products p right join products q on q.parent = p.sku and p.price > 300 where q.sku < 'P080' order by q.sku -- ordered
select count(*), count(a.id), count(b.id), sum(a.id), sum(b.id) from keys_float a full outer join keys_float b on a.d = b.f
select t.id, p.name, pp.name from tree t join tree p on p.id = t.parent left join tree pp on pp.id = p.parent where t.weight > 40 order by t.id -- ordered
select * from (select id, region from customers where id < 8) a natural left join (values (1, 'S'::char(2)), (3, 'W'), (7, 'X')) b(id, region)
select * from (values (1, 'a'), (2, 'b'), (null, 'n')) l(k, v) full join (values (2, 'x'), (3, 'y'), (null, 'm')) r(k, v) using (k) order by k nulls first, l.v, r.v -- ordered
select x.k, j.k, j.a, j.b from (values (1, 10), (2, 20)) x(k, a) join (values (1, 5), (1, 6)) y(k, b) using (k) as j
select count(*) from lines l, products p where l.sku = p.sku and l.quantity * l.price > p.price and p.discount between 10 and 20
select count(*) from orders o join customers c on c.id = o.customer join lines l on l."order" = o.id join products p on p.sku = l.sku where c.vip and p.size > 10
select a.id, b.id from keys_text a join keys_text b on a.v = b.v and a.id < b.id where a.id < 20 order by 1, 2 -- ordered
select a.k, b.v from same a join same b on a.k = b.k and a.v is null and b.v is null order by 1 limit 5
select count(*) from nulls a join nulls b on a.a = b.a or (a.a is null and b.a is null and a.id = b.id)
select count(*) from customers c where exists (select from orders o where o.customer = c.id and o.status = 'x')
select count(*) from customers c where not exists (select 1 from orders o where o.customer = c.id and o.id % 7 = 0)
select count(*) from customers where (region, vip) in (select region, vip from customers where credit > 990)
select a, b from one_row cross join lateral (select a + 1 as b2) x cross join generate_series(1, 3) g order by g -- ordered
select c.id, l.* from customers c, lateral (select o.id, o.total from orders o where o.customer = c.id order by o.placed desc, o.id limit 2) l where c.id in (3, 700) order by 1, 2 -- ordered
select t.id, x.n from tree t left join lateral (select count(*) as n from tree k where k.parent = t.id) x on true where t.id < 12 order by 1 -- ordered
select k.id, u from keys_other k, unnest(k.ci) u where k.id < 9 order by 1, 2 -- ordered
select p.sku, c, o from products p, unnest(p.colours) with ordinality as u(c, o) where p.sku < 'P006' order by 1, 3 -- ordered
select * from rows from (generate_series(1, 2), unnest(array['a', 'b', 'c'])) with ordinality r(a, b, n)
select a.id from keys_float a join keys_float b on a.f between b.f and b.f + 0.001 where b.id < 30 order by 1 -- ordered
select count(*) from orders a join orders b using (customer, status) where a.id < b.id and a.due = b.due
select n.id, t.name from nulls n left join tree t on t.id = n.a and n.b is null where n.a is not null order by n.id limit 12 -- ordered
select (select count(*) from lines where sku = p.sku) as n, p.sku from products p where p.price > 480 order by 2 -- ordered
-- grouping
select region, vip, count(*), sum(credit) from customers group by rollup (region, vip) order by 1, 2, 3 -- ordered
select region, favourite, grouping(region, favourite) as g, count(*) from customers group by cube (region, favourite)
select status, due is null as open, max(total) from orders group by grouping sets ((status), (due is null), ()) order by 1, 2 -- ordered
select kind, extract(month from at) as m, grouping(kind), count(*), sum(amount) from events where at < '2022-03-01' group by rollup (kind), extract(month from at)
select vip, avg(credit)::numeric(12, 4), min(name), max(since) from customers group by vip having count(*) > 100 and max(credit) > 900 order by vip -- ordered
select n, count(*) from keys_exact group by n order by n -- ordered
select d, count(*), min(id) from keys_float group by d having count(*) > 1 order by d -- ordered
select c, count(*) from keys_text group by c order by c nulls first -- ordered
select i, count(*) from keys_time group by i having count(*) > 1 order by i -- ordered
select tz, count(*) from keys_time where id < 10 group by tz order by tz -- ordered
select length(t) as len, count(*) from keys_text group by len order by len desc -- ordered
select count(*) from same group by k, v order by 1 -- ordered
select jb, ci, mr, count(*) from keys_other where id < 40 group by jb, ci, mr
select sum(quantity), sum(price), sum(quantity * price), avg(quantity), avg(price), count(*), count(distinct sku) from lines
select customer, count(*) from orders group by customer having sum(total) > '15000'::money and count(*) filter (where status = 'n') > 10 order by 1 -- ordered
select string_agg(name, '; ' order by weight desc, name) filter (where weight > 40), array_agg(distinct weight % 5 order by weight % 5 desc), bool_or(parent is null) from tree
select parent, array_agg(array[id, weight] order by id) from tree where parent < 6 group by parent order by parent -- ordered
select json_agg(id order by id), jsonb_agg(t order by id), jsonb_object_agg(id, v) from keys_text where id < 8
select min(ci), max(ci), min(r), max(at), min(e), max(e), min(p) from keys_other
select max(i), min(c), max(m), min(m8) from keys_other
select min(t), max(tz), min(ts), max(tsz), min(i), max(im), min(d) from keys_time
select corr(f, d), regr_slope(d, f), covar_pop(f, d), stddev_samp(f), var_pop(d) from keys_float where id between 11 and 200
select percentile_cont(0.5) within group (order by credit), percentile_disc(array[0.1, 0.9]) within group (order by id), mode() within group (order by region) from customers
select rank(500) within group (order by credit) from customers
select distinct region, favourite from customers order by 1 desc, 2 -- ordered
select distinct on (region) region, since, id from customers order by region, since desc, id -- ordered
select distinct on (status, due) status, due, id from orders where id < 3000 order by status, due desc nulls last, id limit 15 -- ordered
select count(distinct (region, vip)), count(distinct home) from customers
select 1 from customers having false
select count(*) from nothing having count(*) = 0
select sum(a), max(b), count(*), array_agg(a), string_agg(b, ',') from nothing
select a, count(*) from nothing group by rollup (a)
-- windows
select id, weight, row_number() over (order by weight, id), rank() over (order by weight), dense_rank() over w from tree where id < 30 window w as (order by weight) order by id -- ordered
select parent, id, sum(weight) over (partition by parent order by id), lag(id, 2, -1) over (partition by parent order by id), first_value(name) over (partition by parent order by weight desc, id) from tree order by id limit 40 -- ordered
select id, avg(weight) over (order by id rows between 2 preceding and 1 following)::numeric(10, 3), ntile(7) over (order by id), count(*) filter (where weight > 20) over (order by id groups 3 preceding) from tree order by id limit 20 -- ordered
select region, count(*), rank() over (order by count(*) desc, region) from customers group by region order by 3 -- ordered
select id, sum(amount) over (order by at range between '10 days' preceding and current row) from events where kind = 'e' and at < '2022-02-01' order by id -- ordered
-- set operations
select id from tree where weight < 5 union select parent from tree where weight > 45 order by 1 nulls first -- ordered
select region::text from customers union all select kind from events where id < 10 order by 1 nulls last -- ordered
select k, v from same intersect all select k, 'constant' from same where k < 2 order by 1 limit 3 -- ordered
select id::int2 from keys_float except select id from keys_exact except all select 400::numeric order by 1 desc limit 4 -- ordered
(select id from tree order by weight desc, id limit 3) union all (select id from tree order by weight, id limit 3) order by 1 -- ordered
select 1 union select '2' union select 3.0 order by 1 -- ordered
select 'a'::varchar(3) as v union all select 'bcdef'::varchar(3)
select null union all select null union all select 5
select trunc(n) from keys_exact where n is not null intersect select trunc(d::numeric) from keys_float where id in (3, 8)
select array[1, 2] union select ci from keys_other where id between 10 and 14 order by 1 -- ordered
select 1 union select 'x'
select 1, 2 union select 3
select true union all select 1
with a as (select id, weight from tree where weight > 30), b(x) as materialized (select max(weight) from a) select a.id from a, b where weight > x - 5 order by 1 -- ordered
with recursive t(n) as (values (1) union all select n * 2 from t where n < 100) select sum(n), count(*) from t
with recursive up as (select id, parent, 1 as depth from tree where id = 100 union all select t.id, t.parent, depth + 1 from tree t join up on t.id = up.parent) select * from up order by depth -- ordered
with x as not materialized (select * from orders) select count(*) from x where id between 100 and 200
with v(a, b) as (values (1, 'x'), (2, null)) select v, v.*, b is null from v order by a -- ordered
-- limits and order
select id from orders order by total desc, id offset 23990 fetch first 3 rows only -- ordered
select weight from tree order by weight desc fetch first 2 rows with ties
select id, credit from customers order by credit nulls first, id limit 75 offset 70 -- ordered
select id, mail from customers order by lower(mail) desc nulls last, id limit 5 -- ordered
select id from tree limit null offset 118
select id from tree limit (select count(*) - 118 from tree) offset 1
select id from tree limit -3
select id from tree offset -1
select name from customers order by name using > limit 3 -- ordered
select p, id from keys_text order by p collate "C" desc nulls last, id limit 12 -- ordered
select e, id from keys_other order by e desc nulls last, id limit 9 -- ordered
select i from keys_other where i is not null order by i desc, id limit 12 -- ordered
select r, rd from keys_other order by r desc nulls last, rd, id limit 12 -- ordered
select jb from keys_other order by jb nulls first, id limit 12 -- ordered
select m8, m from keys_other order by m8 nulls first, m limit 7 -- ordered
select home from customers order by home desc nulls last, id limit 7 -- ordered
-- scans and operators over keys
select id from keys_exact where s between -100 and 400 and b order by id -- ordered
select id from keys_exact where l between symmetric 4000000000000 and -4000000000000000
select id, n from keys_exact where n > 1e10 or n < -1e10 order by n desc, id -- ordered
select id from keys_exact where n2 in (1.5, -0.0001, 'NaN', 999) order by id -- ordered
select id, m from keys_exact where m < '-$500.00' order by m, id -- ordered
select id from keys_exact where o >= 2147483647 and o < 2147483660::oid order by id -- ordered
select id, lsn from keys_exact where lsn <= '1/40004' order by lsn nulls last, id -- ordered
select id, lsn - '1/0'::pg_lsn from keys_exact where id < 4 order by id -- ordered
select id from keys_exact where t in ('(0,2)', '(3,4)', '(17,1)') order by id -- ordered
select id, rc, rc::oid from keys_exact where rc = 'pg_type'::regclass and id < 20 order by id -- ordered
select id, x, c from keys_exact where x = '4294967290' or c = 6::text::cid order by id -- ordered
select x8 from keys_exact where x8 > '115000000000' order by x8 desc nulls first limit 15 -- ordered
select count(*) from keys_exact where i is null or l is null
select id, f from keys_float where f = 'NaN' or f = 0 or f = 'Infinity' order by id -- ordered
select id, d from keys_float where d >= 1e14 order by d desc, id -- ordered
select id, f, d, f::text, d::text from keys_float where id < 11 order by id -- ordered
select id from keys_float where f > d and id < 60 order by id -- ordered
select id, t from keys_text where t > 'apple2' and t < 'b' order by t, id -- ordered
select id, c, length(c), octet_length(c), c || '|' from keys_text where c = 'a' or c like 'b%' order by id limit 20 -- ordered
select id, v from keys_text where v like 'cd%' order by id limit 10 -- ordered
select id, t from keys_text where t like 'a\%b\_c' or t ilike 'ZEBRA 1_' or t similar to '(apple|banana)1[0-9]' order by id -- ordered
select id, t from keys_text where t not like '%a%' and t ~ '^[^0-9]*$' order by id -- ordered
select id, b, length(b), substring(b from 1 for 2), b || '\x00'::bytea from keys_text where b >= '\xe0' or b = '\x5c' order by id -- ordered
select id, q, q::text, ascii(q::text) from keys_text where q >= '0' and q <= '3' order by q, id limit 12 -- ordered
select id from keys_text where n = 'name_7' or n > 'name_75' order by id -- ordered
select id, bi, vb, bi & B'000001111', ~bi, vb || B'1' from keys_text where bi < B'000001010' order by bi, id -- ordered
select id, u from keys_text where u < '11111111-0000-0000-0000-000000000000' order by u, id -- ordered
select id, x from keys_text where x >= 'x' order by x desc, id -- ordered
select count(*) from keys_text where length(t) = 5 and upper(t) > 'B'
select id, d, ts, tsz from keys_time where d = 'infinity' or ts = '-infinity' or tsz > '2019-07-20' order by id -- ordered
select id, t from keys_time where t >= '12:00' and t < '12:30' order by t, id limit 10 -- ordered
select id, tz from keys_time where tz = '12:00+00' order by id -- ordered
select id, i from keys_time where i between '29 days' and '31 days' order by i, id -- ordered
select id, im, d from keys_time where im = '1 year' order by d limit 6 -- ordered
select id, d, ts from keys_time where ts > '2000-02-28' and d is not null order by ts limit 6 -- ordered
select id, i, c from keys_other where i <<= '172.16.0.0/12' and c >>= '192.168.20.1' order by id -- ordered
select id, m, m8, trunc(m), m8 | macaddr8 '00:00:00:00:00:00:00:ff' from keys_other where m > '0a:ff:00:00:00:00' or id < 3 order by id -- ordered
select id, dm, dm * 2, pg_typeof(dm) from keys_other where dm > 99 order by id -- ordered
select id, ci, ci[1], ci[2:], ci || 5, array_upper(ci, 1) from keys_other where ci >= '{8,1}' order by ci, id -- ordered
select id, a2, a2[2], array_dims(a2) from keys_other where a2 @> '{20}' or array_lower(a2, 1) = 2 order by id -- ordered
select id from keys_other where at = '{x3,NULL}' and e <> 'red' order by id limit 8 -- ordered
select id, e from keys_other where e < 'blue' and id < 20 order by id -- ordered
select id, r, r * int4range(2, 8), r -|- int4range(0, 3), upper_inc(r) from keys_other where r && '[1,3]' order by id limit 14 -- ordered
select id, rn, rd, rts from keys_other where rn @> 10.1 or rd = '[2023-01-11,2023-03-11)' or rts is null order by id -- ordered
select id, mr from keys_other where mr @> 6.2::numeric order by id -- ordered
select id, p, (p).name, (p).home.zip, (p).tags[1] from keys_other where p is not null order by id limit 8 -- ordered
select id from keys_other where p = row('p3', row('s0', 'z', null), array['t1'], null)::person order by id -- ordered
select id, iv, iv[0], ov, ov[1] from keys_other where ov = '10 7' order by id -- ordered
select id, j ->> 'i', jb -> 1, jb @> '[3]', jb ? 'a' from keys_other where id between 10 and 15 order by id -- ordered
select sku, label, gross, parent from products where label like 'PRODUCT Z%' order by sku -- ordered
select sku, price, discount, price * (1 - discount / 100) as net from products where (price, discount) > (450, 50) order by sku -- ordered
select sku, attributes ->> 'stock', attributes #> '{tags,1}', attributes -> 'deep' -> 'x' from products where (attributes ->> 'stock')::int = 49 order by sku -- ordered
select sku from products where added::date = '2018-07-01' order by 1 -- ordered
select sku, size from products where size = 'NaN' or size > 1e6 or size = 0 order by sku -- ordered
select sku, colours from products where 'blue' = any (colours) and colours <> '{}' order by sku limit 10 -- ordered
select id, due from orders where due is null and total < 3::money order by id -- ordered
select id from orders where (customer, placed) >= (799, '2021-06-01') order by id limit 12 -- ordered
select count(*), sum(id) from orders where customer in (5, 17, 300, 301, 799) and placed < '2021-03-01'
select count(*) from orders where customer = any (array[1, 2, 3, null]) and status <> all ('{n,p}'::"char"[])
select id from orders where status = 'n' and placed between '2021-02-01' and '2021-02-01 06:00' order by id -- ordered
select count(*) from orders where note is not null and length(note) > 1000
select id, length(note), md5(note) from orders where id in (50, 12000, 23950) order by id -- ordered
select "order", line from lines where "order" in (11, 12) or quantity * price = 824 order by 1, 2 -- ordered
select sku, quantity, count(*) from lines where sku in ('P007', 'P250') and quantity > 5 group by 1, 2 order by 1, 2 -- ordered
select count(*) from same where k = 1 and v is distinct from 'constant'
select k, v from same where k > 0 and v is null order by k desc limit 4
select id, a, b from nulls where a is null and b is not null order by id limit 6 -- ordered
select count(*) from nulls where a > 500 or a is null and id < 100
select id, c from nulls where coalesce(c, date '1900-01-01') > '2027-01-01' order by 1 -- ordered
select a, b from nulls where a between 200 and 500 order by a desc nulls last, b nulls first -- ordered
select id, d, d is null, cardinality(d), 100 = any (d), 5 = any (d) from nulls where id % 100 = 0 order by id limit 4 -- ordered
select id, a, b, c from churn where id between 880 and 905 order by id -- ordered
select count(*), sum(a), sum(c), min(b), max(b) from churn
select id from churn where a < -90 order by a, id -- ordered
select b, a, c from churn where b = 'b5!' order by a, c -- ordered
select count(*) from churn where id between 1000 and 1170
select a, c, d, e, b, v, w from altered where a in (1, 40, 41, 60) order by a -- ordered
select w, count(*), sum(v) from altered group by w order by w -- ordered
select x.v, one_row.a from one_row left join altered x on x.a = one_row.a + 5
select altered from altered where a > 58
select o.a, x.v, x.z, x, x is null from one_row o left join altered x on x.a = o.a + 500
select x.a, y.z, y.v, y.ctid from altered x left join altered y on y.v = x.a where x.a between 30 and 40 order by x.a -- ordered
select count(x.z), count(y.z), count(*) from altered x full join (select * from altered where z = 'no c') y using (v)
select z, max(v), (select count(*) from altered b where b.z = a.z and b.v > 500) from altered a group by z order by z -- ordered
with q as (select * from altered where z <> 'true') select q.v, w, z from q where q.v in (select v from altered where w = 'w0') order by v -- ordered
select sku, attributes['tags'][1], attributes['stock'], attributes['deep']['x'], attributes['nope'][0], attributes['tags'][-1] from products where sku < 'P004' order by sku -- ordered
select s, s.name, (s).w from (select id, w, name from boxes where id < 23) s order by id -- ordered
select t.id, s, s is null from tree t left join (select id as k, weight from tree where weight > 45) s on s.k = t.id where t.id < 20 order by t.id -- ordered
select o, o.x from one_row cross join lateral (select a + 1 as x, b as y) o
select v, (v).column2 from (values (1, 'a'), (2, null)) v order by 1 -- ordered
select a from (select array(select id from tree where parent = 1 order by id) as a) s where a[2] = 4
-- toast and width
select id, length(body), length(plain), length(raw), cardinality(words), length(doc::text), tail from documents order by id -- ordered
select id, md5(body), md5(plain), md5(raw::text), md5(words::text), md5(doc::text) from documents where id > 20 order by id -- ordered
select id, substr(body, 1000, 12), right(plain, 5), words[37], doc ->> 'key7' from documents where id % 5 = 0 order by id -- ordered
select id from documents where body like '%appended' order by id -- ordered
select count(distinct body), max(length(plain)) from documents where body is not null
select c1, c2, c3, c11, c22, c57, c101, c143, c146, c149, c150 from wide where c143 is null or c143 > 290 order by c11 limit 12 -- ordered
select * from wide where c11 = 7
select c101 from wide where c149 < 2 order by c149 desc -- ordered
-- partitions and inheritance
select tableoid::regclass, count(*), sum(amount) from events group by 1 order by (tableoid::regclass)::text -- ordered
select * from events where at = '2022-06-01' order by id -- ordered
select id, kind, at from events where kind is null and at between '2022-02-01' and '2022-02-20' order by id -- ordered
select count(*) from events where kind = 'a' and at >= '2022-12-15' and at < '2023-02-01'
select id, payload from events where id in (100, 1000, 2000, 2999) order by id -- ordered
select count(*) from events where at is null or at < '2021-12-01'
select events from events where id < 3 or id = 1501 order by id -- ordered
select e.id, e.tableoid::regclass, f.id from events e join events f on f.at = e.at and f.id > e.id where e.id between 740 and 760 order by 1, 3 -- ordered
select * from events_2022 where id = 301
select kind, max(at), min(id) from events_2022_a group by kind order by kind -- ordered
select sensor, date_trunc('day', taken), avg(value), count(*) from readings group by 1, 2 order by 1, 2 limit 20 -- ordered
select * from shapes order by id, name -- ordered
select tableoid::regclass, count(*) from shapes group by tableoid order by (tableoid::regclass)::text -- ordered
select s.id, b.w from shapes s join boxes b on s.id = b.id and s.tableoid = b.tableoid order by 1, 2 limit 20 -- ordered
select count(*) from only boxes
select id, colour from boxes* where id > 48 order by id desc, colour -- ordered
-- views
select * from best_customers order by value desc, name limit 10 -- ordered
select customer, value from customer_values where customer < 10 order by 1 -- ordered
select id, mail, zip, (home).street from contacts where zip > '00090' order by id limit 8 -- ordered
select contacts from contacts where id in (1, 6) order by id -- ordered
select * from event_kinds order by kind, year nulls first -- ordered
select * from computed where w = 'w1' order by a -- ordered
select sort, count(*), max(id) from all_shapes where id > 25 group by sort order by sort -- ordered
select * from region_totals where region >= 'N' order by region -- ordered
-- subqueries
select id from customers where credit > (select avg(credit) from customers) and id < 30 order by id -- ordered
select id, (select max(o.id) from orders o where o.customer = c.id and o.due > c.since) from customers c where c.id <= 5 order by id -- ordered
select c.id from customers c where c.credit > (select avg(x.credit) * 1.9 from customers x where x.region = c.region) order by 1 -- ordered
select id from tree t where weight >= all (select weight from tree s where s.parent = t.parent) and parent is not null order by id limit 15 -- ordered
select id from tree where id in (select parent from tree) and id not in (select parent from tree where parent > 20 and parent is not null) order by 1 -- ordered
select id from tree where id not in (select parent from tree)
select (select weight from tree where parent = 1 and id > 1)
select (select weight from tree where false), exists (select * from nothing), array(select weight from tree where id < 4 order by id), row(1, 2) = (select 1, 2)
select case when exists (select 1 from orders where customer = 1 and status = 'x') then 'yes' else 'no' end, 5 in (select id from tree), null in (select id from nothing)
select x from (select y as x from (select id + 1 as y from tree where id < 4) a) b order by x -- ordered
-- expressions and casts
select '12'::int2, '-5'::int8, 1.5::int, 2.5::int, -2.5::numeric::int, 2.5::float8::int, 'f'::bool, 'yes'::bool::int, 3::bool, 65::"char", 'x'::"char"::int
select '1e3'::float4, 1e10::float8::float4, 0.1::float4::float8, 0.1::float8::numeric, 123456.789::numeric(8, 1), 1::money, 12.345::numeric::money, '$3.50'::money::numeric
select 'abc'::char(5) || '|', 'abcdef'::varchar(3), 'abcdef'::char(2), 'abc'::name, 'a b'::text::char(3)::text || '|', B'101'::bit(5), 5::bit(8), B'1101'::int, '101'::varbit
select '2024-02-29'::date::timestamp, '2024-02-29 12:34:56.789'::timestamp::date, '12:34:56.7891234'::time(2), timestamp '2024-02-29 12:34'::time, timestamptz '2024-02-29 12:34+05'::timestamp, '1 day 25:00'::interval::time
select '{1,2}'::int[]::text[], array[1.5, 2.4]::int[], '{a,b}'::text[]::varchar(1)[], row(1, 'x')::text, '(5,6)'::text, int4range(1, 5)::text, '[1,5)'::int4range::int4multirange, 'red'::colour::text, 'blue'::text::colour
select '192.168.1.5/24'::inet::cidr, '10.0.0.0/8'::cidr::inet::text, '08002b:010203'::macaddr::macaddr8, 'pg_class'::regclass::oid, 16::oid::regtype, 'int4'::regtype::oid, '1/A'::pg_lsn::text, '{"a": [1, 2]}'::json::jsonb, '[1, "x"]'::jsonb::text
select jsonb '{"a": 1.50, "b": true}' -> 'a' = '1.5', (jsonb '12.5')::numeric, (jsonb 'true')::bool, to_json('x"y'::text), to_jsonb(1.10), array_to_json('{1,NULL}'::int[])
select 7 / 2, -7 / 2, 7 % -3, -7 % 3, 7.0 / 2, 2 ^ 10, 2.0 ^ 0.5, |/ 2.0, 5 # 3, 5 & 3, 5 | 3, ~5, 1 << 4, -16 >> 2, @ -3
select 1 = 1.0, '1' = 1, 1::int2 + 1::int8, 1::float4 + 1, 2 * 1.5::money, 3 || 'x', 'a' || null, array[1] || 2, 1 || array[2, 3], 'x' || array['y']
select date '2024-01-31' + interval '1 month', date '2024-03-01' - date '2024-02-01', timestamp '2024-01-01' - timestamp '2023-01-01 12:00', age(timestamp '2024-03-01', timestamp '2023-12-31'), interval '1 mon -1 day' * 1.5, justify_interval('35 days 25 hours'), time '10:00' - time '12:30', date '2024-01-01' + time '12:00'
select extract(dow from date '2024-02-29'), extract(epoch from interval '1 day 2.5 s'), extract(week from date '2021-01-03'), extract(timezone from timestamptz '2024-01-01 00:00+02'), date_part('julian', date '2000-01-01'), extract(microseconds from time '12:00:01.5'), extract(century from date '0001-01-01 BC')
select timestamptz '2024-03-31 01:30+00' at time zone 'Europe/Berlin', timestamp '2024-03-31 02:30' at time zone 'Europe/Berlin', time with time zone '12:00+00' at time zone '-05', timestamp '2024-01-01' at time zone interval '3 hours', timestamp '2024-06-01 00:00' at local
select (date '2024-01-01', date '2024-02-01') overlaps (date '2024-01-31', interval '1 day'), (time '10:00', time '11:00') overlaps (time '11:00', time '12:00'), date_bin('15 minutes', timestamp '2024-01-01 12:44:59', timestamp '2024-01-01'), make_date(2024, 2, 29), make_interval(days => 3, hours => 4)
select substring('hello' from 2 for 3), substring('foobar' similar '%#"o_b#"%' escape '#'), overlay('abcdef' placing 'XX' from 3), position('b' in 'abc'), trim(both 'x' from 'xxaxx'), trim(leading from '  a '), 'abc' like 'a_c', 'a' between symmetric 'c' and 'a', 'abc' similar to '(a|b)%', normalize(U&'e\0301') = 'é'
select row(1, null) is null, row(null, null) is null, row(1, null) is not null, row(1, 2) < row(1, 3), row(1, null) = row(1, 2), (1, 'a') is distinct from (1, null), null is distinct from null, (1, 2) in ((1, 2), (3, 4)), row(1, row(2, 3)) = row(1, row(2, 3))
select array[[1, 2], [3, 4]], array[[1, 2], [3, 4]][2][1], (array[1, 2, 3, 4])[2:3], ('{{1,2,3},{4,5,6}}'::int[])[1:2][2], (array[1, 2, 3])[5], array[1, null] is null, array[]::int[], array_fill(7, array[2, 2]), array[1, 2] <@ array[2, 1, 0], array[1, 2] && array[3], array_position(array['a', 'b'], 'b')
select nullif(1, 1), nullif('a', 'b'), coalesce(null, 'x', 'y'), greatest(1, 2.5, null), least('b', 'a'), case 2 when 1 then 'one' when 2 then 'two' end, case when null then 1 else 2 end, num_nulls(1, null, 'x'), (null::bool) is unknown, not null::bool, true and null, false and null, true or null
select lower(region) || '/' || favourite::text, coalesce(vip::text, '?'), to_char(since, 'FMDay DD Mon YYYY'), to_char(credit, 'FM999G990D00'), format('%s-%I-%L', id, name, mail) from customers where id < 4 order by id -- ordered
select regexp_replace(title, '[A-M]', '_', 'g'), split_part(title, ' ', 2), reverse(sku), initcap(lower(title)), left(title, -3), lpad(sku, 6, '*'), translate(title, 'Pd', 'Qt'), repeat(sku, 2), strpos(title, 'u'), md5(sku) from products where sku < 'P003' order by sku -- ordered
select current_schema, current_schemas(false), pg_typeof(1.5), pg_typeof(null), current_setting('search_path'), session_user = current_user, current_catalog
select format_type(atttypid, atttypmod), attgenerated, attidentity, attnotnull, col_description(attrelid, attnum) from pg_attribute where attrelid = 'products'::regclass and attnum > 0 order by attnum -- ordered
select indexrelid::regclass, pg_get_indexdef(indexrelid) from pg_index where indrelid = 'keys_text'::regclass order by pg_get_indexdef(indexrelid) -- ordered
select 'x' as a, a from (values (1)) v(a) order by v.a -- ordered
values (1, 'one'::text), (2, null), (null, 'three') order by 1 desc nulls last limit 2 -- ordered
values (1), (2.5), ('3')
table one_row
select from one_row
select all 1 as "select", 2 as "from", 3 as "Ünï", 4 "?column?"
select one_row, one_row.*, (one_row).b, o.* from one_row, one_row as o(x)
select x, (x).f1 from (select row(1, 'a') as x) s
select s, s.a, (s).b from (select 1 as a, 'q' as b) s
select j from (one_row a cross join one_row b) j
select last_value, log_cnt, is_called from customer_ids
-- system columns and tids
select ctid, tableoid::regclass, xmax, cmin, id from tree where id < 4 order by id -- ordered
select id from tree where ctid = '(0,5)' or ctid = '(0,7)' order by id -- ordered
select count(*) from orders where ctid >= '(5,1)' and ctid < '(7,3)'
select id from orders where ctid = any (array['(0,1)', '(233,9)', '(5000,1)']::tid[]) order by id -- ordered
select a.ctid from one_row a join one_row b on a.ctid = b.ctid
-- errors
select nope from customers
select customers.nope, 1 from customers
select c.id from customers
select * from fresh.missing
select id from customers, tree
select max(id) from customers where max(id) > 1
select id, max(credit) from customers group by region
select region from customers group by region having id > 1
select sum(sum(id)) from customers
select count(*) over () from customers where row_number() over () = 1
select unknown_function(id) from customers
select upper(1)
select id + name from customers
select 1 order by 2
select 1 group by 5
select distinct region from customers order by id
select distinct on (region) region, id from customers order by id
select 'abc'::int
select '2024-13-01'::date
select 32768::int2
select 1e400::float8
select (1e10)::numeric(5, 2)
select 'red2'::colour
select 'a'::code_upper
select 150::percent
select null::code_upper
select '{1,2'::int[]
select '{"a":}'::json
select 1 / (id - 3) from tree order by id
select sqrt(-1), ln(0)
select 2147483647 + 1
select (9223372036854775807 + 1)
select (-32768)::int2 * -1::int2, - (-32768)::int2
select 'x' like 'a\'
select substring('abc' from 1 for -1)
select chr(0)
select 'abc' ~ '('
select (row(1, 2)).f3
select array[1, 2, 'x']
select array[[1, 2], [3]]
select case when true then 1 else 'x' end
select coalesce(1, 'y')
select * from customers limit 'x'
select a.b.c.d.e from tree
select $1
select * from tree t join orders t on true
select name from customers c join tree t using (name) join lines l using (nope)
select id from only (tree) where ctid = 'x'
select (select id, parent from tree)
select id in (select id, parent from tree) from tree
select * from tree for update
insert into tree values (1)
update customers set nope = 1
delete from missing_table
create table t (a int)
drop table customers
truncate orders
nextval
select nextval('customer_ids')
explain analyze insert into tree values (1)
with d as (delete from tree returning *) select * from d
copy tree from stdin
alter table nowhere add column x int
select setval('customer_ids', 5)
lock table tree in access exclusive mode
lock table tree in access share mode
create temp table tt as select 1
select id into new_table from tree
-- sessions
show search_path
set work_mem = '4MB'
show WORK_MEM
select current_setting('work_mem'), current_setting('nope.nope', true)
set datestyle = 'German, DMY'
select date '2024-02-01', timestamp '2024-02-01 10:00', timestamptz '2024-07-01 10:00+00', '03/02/2024'::date
set datestyle to default
set timezone to 'America/New_York'
select timestamptz '2024-07-01 12:00+00', '2024-03-10 02:30'::timestamptz, date_trunc('day', timestamptz '2024-07-01 02:00+00'), placed from orders where id = 3
show time zone
reset timezone
set intervalstyle = iso_8601
select interval '1 year 2 mons -3 days 04:05:06.7', interval '0'
set intervalstyle = 'postgres_verbose'
select interval '1 year 2 mons -3 days 04:05:06.7', -interval '1 day'
reset intervalstyle
set extra_float_digits = 0
select 0.1::float8 + 0.2, 1::float4 / 3
reset extra_float_digits
set bytea_output = escape
select '\x00415c7f80'::bytea
reset bytea_output
set nope = 1
set work_mem = 'lots'
show nope
set local work_mem = '8MB'
begin isolation level repeatable read
select count(*) from tree
set transaction isolation level serializable
rollback
begin
select 1 / 0
select 1
rollback
begin read only
declare s scroll cursor for select id from tree order by id
rollback
begin read only
declare c cursor for select id, weight from tree order by id
fetch 3 from c
move forward 5 in c
fetch next from c
fetch all from c
close c
fetch c
select 1
rollback
savepoint s
prepare by_id(int, text) as select id, name from customers where id < $1 and region = $2 order by id
execute by_id(20, 'N') -- ordered
execute by_id(20)
execute by_id('12', 'S') -- ordered
prepare by_id as select 1
deallocate by_id
execute by_id(1, 'x')
prepare untyped as select $1 + 1, $2 || 'x', $3::date
execute untyped(1, 'y', '2024-01-01')
deallocate all
commit
-- what another session's fuzzing found
select sum(1) over (order by 1 rows between current row and 1 preceding)
select sum(1) over (order by 1 rows between unbounded following and unbounded following)
select sum(1) over (order by 1 rows between 1 following and current row)
select id from tree where false except select id / 0 from tree
select from generate_series(1, 5) intersect all select from generate_series(1, 3)
select sum(1 / weight) filter (where weight > 0), count(*) from tree
select id, sum(100 / (weight - 40)) filter (where weight > 40) over (order by id rows 3 preceding) from tree where id < 40 order by id -- ordered
select id, generate_series(1, 3) g from tree order by id limit 7 -- ordered
select 'foo' as f, generate_series(1, 2) as g from tree order by 1
select distinct on (a) a, b, generate_series(1, 3) g from (values (3, 2), (3, 1), (1, 1)) t(a, b) order by a, b desc
select distinct weight % 3, generate_series(1, 3) g from tree order by 1 nulls first, 2 limit 5 -- ordered
select parent, count(*), generate_series(1, 2) from tree where parent < 5 group by parent order by parent, 3 -- ordered
select id, unnest(array[id, weight]) u from tree where id < 5 order by 2 desc nulls last, 1 -- ordered
select generate_series(1, 3), generate_series(1, 2) order by 1 desc limit 2 -- ordered
select id, generate_series(1, 2), row_number() over (order by id) from tree where id < 4 order by 1, 2 -- ordered
select a, count(*), unnest('{1,1,3}'::int[]) from (values (1), (1), (2)) t(a) group by 1, 3
select q from (select id as q, (select id from tree limit 2) as x from tree where id < 3) s order by 1 -- ordered
explain (costs off) select id, generate_series(1, 3) g from tree order by id limit 7
-- plans
explain (costs off) select * from tree where id = 5
explain (costs off) select id from orders where id between 10 and 20
explain (costs off) select * from orders where total > 5::money
explain (costs off) select count(*) from lines
explain (costs off) select * from customers order by name limit 3
explain (costs off) select * from tree t join tree p on p.id = t.parent
explain (costs off) select * from orders where ctid = '(1,2)'
explain (costs off) select * from events where at = '2022-06-01' and kind = 'a'
explain (costs off, verbose) select id + 1, upper(name) from customers where id < 3
explain (costs off) select 1
explain (costs off) select * from nothing where false
set enable_seqscan = off
explain (costs off) select id from keys_exact where n > 5
explain (costs off) select count(*) from orders where customer = 5 or customer = 7
reset enable_seqscan
-- parallel
set min_parallel_table_scan_size = 0
set parallel_setup_cost = 0
set parallel_tuple_cost = 0
select count(*), sum(id), min(placed), max(total) from orders where status in ('n', 'x')
select c.region, count(*), sum(l.quantity) from customers c join orders o on o.customer = c.id join lines l on l."order" = o.id group by c.region order by 1 -- ordered
select k, count(v) from same group by k order by k -- ordered
reset min_parallel_table_scan_size
reset parallel_setup_cost
reset parallel_tuple_cost
