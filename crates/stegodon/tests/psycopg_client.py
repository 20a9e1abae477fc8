"""What a Python program does with psycopg 3: parameters of many types both ways, pipelines, server cursors, errors.

Usage: psycopg_client.py SOCKET_DIRECTORY PORT. Prints one line a step; the test compares two servers' lines.
"""
import datetime as dt
import decimal
import sys
import uuid

import psycopg
from psycopg.rows import dict_row

host, port = sys.argv[1:]


def connect(**more):
    return psycopg.connect(host=host, port=port, user="postgres", dbname="demo", **more)


VALUES = [
    True, 7, -(2**40), 2**70, 1.5, float("inf"), decimal.Decimal("12.340"), "text \u00e9'\\", b"\x00\xff",
    dt.date(2024, 2, 29), dt.time(12, 30, 1, 5), dt.datetime(2024, 2, 29, 1, 2, 3, 4),
    dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.timezone.utc), dt.timedelta(days=3, seconds=5),
    uuid.UUID(int=5), [1, 2, None], ["a", None, 'q"'], None,
]

with connect() as connection:
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        for value in VALUES:
            cast = "::text" if value is None else ""
            cursor.execute(f"select %s{cast} as v, %s::text as t", (value, value if not isinstance(value, list) else str(value)))
            print("value", binary, cursor.fetchone(), [(c.name, c.type_code) for c in cursor.description])
        cursor.execute("select id, t, v, n, q, u from zoo.texts order by id limit 3")
        print("row", binary, cursor.fetchall())
        cursor.execute("select date '2024-02-29' + id, timestamp '2024-02-29 12:00' + id * interval '1 hour 0.000005 s' from zoo.times limit 3")
        print("times", binary, cursor.fetchall())
    rows = connection.cursor(row_factory=dict_row).execute("select id, i4, n2 from zoo.numbers order by id limit 2").fetchall()
    print("dicts", rows)
    for _ in range(7):
        # From the sixth time on psycopg prepares it.
        print("prepared", connection.execute("select i4 from zoo.numbers where id = %s", (3,)).fetchone())
    with connection.pipeline():
        first = connection.execute("select 1")
        second = connection.execute("select %s + 1", (41,))
        print("pipeline", first.fetchone(), second.fetchone())
    with connection.cursor(name="many") as cursor:
        cursor.itersize = 10
        cursor.execute("select id from zoo.numbers order by id")
        print("server cursor", sum(row[0] for row in cursor))
    cursor = connection.cursor()
    print("stream", [row[0] for row in cursor.stream("select id from zoo.numbers order by id limit 5")])
    connection.commit()

    for sql in ["select 1/0", "select nothing", "selec", "insert into zoo.frozen values (1, 'x')", "select 'x'::int"]:
        try:
            with connection.transaction():
                connection.execute(("set transaction read only; " if sql.startswith("insert") else "") + sql)
        except psycopg.Error as error:
            print("error", sql, error.sqlstate, type(error).__name__, error.diag.message_primary)
    try:
        with connection.transaction():
            try:
                with connection.transaction():
                    connection.execute("select 1/0")
            except psycopg.errors.DivisionByZero:
                print("savepoint", connection.execute("select 'goes on'").fetchone())
            raise psycopg.Rollback()
    except psycopg.Error as error:
        print("unexpected", error)
    print("status", connection.info.transaction_status.name, connection.info.encoding, connection.info.server_version)

with connect(autocommit=True) as connection:
    print("many", connection.cursor().execute("select 1; select 2").nextset())
    for name in ["client_encoding", "DateStyle", "integer_datetimes", "IntervalStyle", "server_encoding", "TimeZone"]:
        print("parameter", name, connection.info.parameter_status(name))
