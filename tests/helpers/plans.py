"""How SQLite means to read what a query asks for."""

from django.db import connection


def plan_of(sql):
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        return " ".join(str(row[-1]) for row in cursor.fetchall())
