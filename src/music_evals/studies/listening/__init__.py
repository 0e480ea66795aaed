"""Listening tests: made of sounds, held in the browser, analysed, and beside what metrics say."""
