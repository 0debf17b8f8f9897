"""Runs in and out: what becomes of a file, and where.

A file of rows that somebody brings (`import_jobs` keeps it, and a worker does it)::

    containers   bytes unpacked, text as UTF-8
    sources      CSV, JSON, JSON Lines, Parquet (`parquet`) or a workbook into records
    mapping      records into rows, by the columns' names or as somebody maps them;
                 `formats` reads the public formats in its place
    row_models   a row: one statement about a pair or a single item, of values `fields` checks
    question     what is asked of single items, and one answer to it
    drafts       rows put together: what an item is, and who said what of it, once
    import_read  all of it checked, beside the database, into a file of its own (`import_scratch`)
    import_write that file into a run, in short transactions (`import_steps`)

`preview` goes as far as `drafts` with the first rows, for the page. A bundle, which is a whole run
or project, is read by `bundle` and written by `restore` and `restore_rows`. `export_files` has all
files that a run is exported as.
"""
