"""Migrations of the tables of a study, one module a step."""
