CREATE TABLE v (id int PRIMARY KEY, what text) WITH (autovacuum_enabled=off, fillfactor=100);
INSERT INTO v VALUES (100, 'frozen'), (101, 'frozen, deleted'), (102, 'frozen, locked for update'), (103, 'frozen, delete aborted');
VACUUM FREEZE v;
DELETE FROM v WHERE id = 101;
BEGIN; SELECT FROM v WHERE id = 102 FOR UPDATE; COMMIT;
BEGIN; DELETE FROM v WHERE id = 103; ROLLBACK;
INSERT INTO v VALUES (1, 'committed'), (4, 'deleted'), (5, 'delete aborted'), (6, 'delete crashed'), (7, 'updated'),
  (8, 'update aborted'), (9, 'locked for update'), (10, 'locked by two'), (11, 'multixact, update committed'),
  (12, 'multixact, update aborted'), (14, 'deleted by prepared'), (18, 'deleted by subtransaction of prepared'),
  (19, 'multixact, updated by prepared'), (20, 'update crashed'), (21, 'locked by crashed'),
  (22, 'deleted in rolled back subtransaction'), (23, 'deleted in released subtransaction'), (24, 'locked by prepared'),
  (25, 'multixact, deleted by committed'), (28, 'updated twice');
BEGIN; INSERT INTO v VALUES (2, 'insert aborted'); ROLLBACK;
DELETE FROM v WHERE id = 4;
BEGIN; DELETE FROM v WHERE id = 5; ROLLBACK;
UPDATE v SET what = 'updated, new' WHERE id = 7;
UPDATE v SET what = 'updated once' WHERE id = 28;
UPDATE v SET what = 'updated twice, newest' WHERE id = 28;
BEGIN; UPDATE v SET what = 'update aborted, new' WHERE id = 8; ROLLBACK;
BEGIN; SELECT FROM v WHERE id = 9 FOR UPDATE; COMMIT;
BEGIN; INSERT INTO v VALUES (30, 'parent'); SAVEPOINT a; INSERT INTO v VALUES (31, 'subtransaction released'); DELETE FROM v WHERE id = 23; RELEASE a;
  SAVEPOINT b; INSERT INTO v VALUES (32, 'subtransaction rolled back'); DELETE FROM v WHERE id = 22; ROLLBACK TO b; COMMIT;
BEGIN; SAVEPOINT a; INSERT INTO v VALUES (33, 'subtransaction of aborted'); RELEASE a; ROLLBACK;
-- A prepared locker stands in for the second session that a multixact needs.
BEGIN; SELECT FROM v WHERE id IN (10, 11, 12, 19, 25) FOR KEY SHARE; PREPARE TRANSACTION 'locker';
BEGIN; SELECT FROM v WHERE id = 10 FOR KEY SHARE; COMMIT;
UPDATE v SET what = 'multixact, update committed, new' WHERE id = 11;
BEGIN; UPDATE v SET what = 'multixact, update aborted, new' WHERE id = 12; ROLLBACK;
BEGIN; UPDATE v SET what = 'multixact, updated by prepared, new' WHERE id = 19; PREPARE TRANSACTION 'updater';
COMMIT PREPARED 'locker';
BEGIN; SELECT FROM v WHERE id = 25 FOR KEY SHARE; PREPARE TRANSACTION 'locker2';
UPDATE v SET what = 'multixact, updated by committed, new' WHERE id = 25;
COMMIT PREPARED 'locker2';
BEGIN; INSERT INTO v VALUES (13, 'inserted by prepared'); DELETE FROM v WHERE id = 14;
  SAVEPOINT a; INSERT INTO v VALUES (15, 'inserted by subtransaction of prepared'); DELETE FROM v WHERE id = 18; RELEASE a;
  SAVEPOINT b; INSERT INTO v VALUES (16, 'rolled back subtransaction of prepared'); ROLLBACK TO b;
  LOCK TABLE p2 IN ACCESS EXCLUSIVE MODE;
  PREPARE TRANSACTION 'worker';
BEGIN; SELECT FROM v WHERE id = 24 FOR UPDATE; PREPARE TRANSACTION 'locker3';

-- In a second session, open while the server was stopped with -m immediate after a CHECKPOINT:
BEGIN; INSERT INTO v VALUES (3, 'insert crashed'); DELETE FROM v WHERE id = 6; UPDATE v SET what = 'update crashed, new' WHERE id = 20;
SELECT FROM v WHERE id = 21 FOR UPDATE;
SAVEPOINT a; INSERT INTO v VALUES (34, 'subtransaction of crashed'); RELEASE a;
SELECT pg_sleep(4);
