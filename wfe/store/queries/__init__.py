"""Queries: what is asked of a store, what it means, and how SQLite finds it.

    typed (words, fields, times) ─┐
                                  ├─► conditions ─► filters ─► memory: `conditions.holds`
    Query ────────────────────────┘                        └─► SQLite: selection, facts_sql, blocks

What a condition means is said once, in `conditions` and `facts`; SQL says the same.
"""
