CREATE EXTENSION pageinspect;
CREATE TYPE pair AS (a int2, b text, c int8);
CREATE TABLE t (id int4, b bool, c "char", s int2, l int8, f float8, t text, p pair, n numeric, nm name, m text) WITH (autovacuum_enabled=off);
ALTER TABLE t ALTER m SET STORAGE MAIN;
INSERT INTO t VALUES
 (1, true, 'x', -2, 3, 1.5, 'hello', (7,'seven',-7), 12.340, 'n1', NULL),
 (2, NULL, NULL, NULL, 4, NULL, '', (NULL,NULL,8), NULL, NULL, 'm'),
 (NULL, false, 'y', 5, NULL, 2.5, repeat('long text ', 15), NULL, -1, 'n3', repeat('abcdefgh', 400)),
 (4, true, 'z', 6, 7, 3.5, repeat('x', 127), (1, repeat('y',200), 2), 'NaN', 'n4', '');
INSERT INTO t SELECT 5, NULL, NULL, NULL, NULL, NULL, string_agg(md5(i::text), '' ORDER BY i), NULL,NULL,NULL,NULL FROM generate_series(1,100) i;
ALTER TABLE t ALTER t SET STORAGE EXTERNAL;
INSERT INTO t SELECT 6, NULL, NULL, NULL, NULL, NULL, repeat('external ', 300), NULL,NULL,NULL,NULL;
ALTER TABLE t ADD COLUMN late int4 DEFAULT 42;
INSERT INTO t(id, late) VALUES (7, 43);
UPDATE t SET late = 44 WHERE id = 7;
DELETE FROM t WHERE id = 4;
BEGIN; SELECT id FROM t WHERE id = 2 FOR SHARE; COMMIT;
BEGIN; INSERT INTO t(id) VALUES (8); ROLLBACK;
CHECKPOINT;
SELECT pg_relation_filepath('t'), 't'::regclass::oid, reltoastrelid, pg_relation_size('t') FROM pg_class WHERE relname='t';
