"""Runs in and out: what becomes of a file, and where.

A file of rows that somebody brings (`import_jobs` keeps it, and a worker does it)::

    sources      CSV, JSON, JSON Lines or Parquet (`parquet`) into records
    mapping      records into rows, by the columns' names or as somebody maps them;
                 `formats` reads the public formats in its place
    rows         a row: one statement about a pair or a single item, of values that `fields` checks
    answers      what is asked of single items, and one answer to it
    statements   rows put together: what an item is, and who said what of it, once
    import_pictures  pictures that rows name, read again and in their place an address
    import_read  all of it checked, beside the database, into a file of its own (`import_scratch`)
    import_write that file into a run, in short transactions (`steps`)

`preview` goes as far as `statements` with the first rows, for the page. A bundle, which is a whole
run or project, is read by `bundle`, and `restore` writes it: `restore_rows` what stands before its
ledger. `import_report` says what an import is told, and what it has to say at last.

`export_files` has all files that a run is exported as: `export` writes bundles, `export_rows`
tables, `training` what trainers and annotation tools take.
"""
