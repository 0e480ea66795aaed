"""Rules of the platform: values and what follows from them, without a database."""
