"""What a run found, for people (table, summary) and for machines (JSON Lines, JUnit XML). Never imports torch."""
