"""Recordings: decoding, the feature store, and one feature a file.

`io` decodes, `store` keeps features in files, `backends` lists the extractors by name, and `extraction` runs them.
`chroma`, `key`, `chords`, `beats`, `f0`, `melody`, `structure` and `segments` hold one feature each; those that need a
package of their own are in `optional` and `optional_f0`. `rendering` goes the other way, from a score to a recording.
"""
