"""Reading what was generated, judged or voted on elsewhere: files in, a stream of rows out.

Pure: file objects are handed in, nothing is written, no database is known. `reading.read` is the
way in; `rows` holds what comes out; `vote_file` writes and reads the GrandJury vote file.
"""
