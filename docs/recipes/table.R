# Rows of a query as CSV: Rscript table.R HOST PORT DATABASE USER "SELECT ..."
# Debian: apt-get install r-base-core r-cran-dbi r-cran-rpostgresql. The password is read from ~/.pgpass or PGPASSWORD.
Sys.setenv(TZ = "UTC")  # times of the warehouse are UTC; R would show them in the zone of the machine
given <- commandArgs(trailingOnly = TRUE)

connection <- DBI::dbConnect(
  RPostgreSQL::PostgreSQL(),
  host = given[1], port = as.integer(given[2]), dbname = given[3], user = given[4]
)
rows <- DBI::dbGetQuery(connection, given[5])
invisible(DBI::dbDisconnect(connection))

numbers <- sapply(rows, is.numeric)
rows[numbers] <- lapply(rows[numbers], function(x) ifelse(is.na(x), NA, sprintf("%.17g", x)))
write.csv(rows, row.names = FALSE, na = "\\N", quote = TRUE)
