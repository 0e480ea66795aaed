"""Where a study is kept: tables, transactions, migrations, backups. Nothing else of the package speaks SQL."""
