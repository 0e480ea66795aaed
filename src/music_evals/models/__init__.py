"""Networks, baselines, encoders, writers and their training.

Inpainting: `anticipation_rnn`, `inpaintnet`, `sketchnet` and `vli` hold a network each, `training` the loop that trains
them from a recipe file, in one go or in stages, and `baselines` what a network has to beat; they speak NoteSeq contexts
and obey `protocols.Inpainter`.

Description: `music_encoders` turns recordings into vectors, `music_tagger` holds the networks that read tags from them
(`protocols.Tagger`), `tag_training` trains these. Lyrics: `lyric_writers` (`protocols.LyricWriter`).
"""
