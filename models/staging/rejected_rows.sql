/* ---
about: Lines of raw files that could not be read, with the reason. The other lines of these files are loaded.
grain: [file, line, reason, text]
columns:
  file: VARCHAR the file's path in its release
  line: INTEGER [1] line number, the header being 1; in a workbook, the row of the sheet that the reason names
  reason: VARCHAR why the line could not be read
  text: VARCHAR the line, at most 500 characters
checks:
  - warn: not (starts_with(file, 'acme/') or starts_with(file, 'itp/'))
    says: "{file}:{line}: {reason}"
--- */
SELECT DISTINCT file, line, reason, text
FROM raw.rejected_rows
