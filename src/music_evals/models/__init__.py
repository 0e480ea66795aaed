"""Networks, baselines, encoders, writers and their training.

Inpainting: `anticipation_rnn`, `inpaintnet`, `sketchnet`, `vli` and `infill_transformer` hold a network each, and
`baselines` what a network has to beat; they speak NoteSeq contexts and obey `protocols.Inpainter`. Piano rolls: `bmst`,
`full_sequence` and `style_lstm`, sampled by `gibbs`. `training` is the loop that trains them all from a recipe file.

Description: `encoders` turn recordings into vectors, `music_tagger` holds the networks that read tags from them
(`protocols.Tagger`). Lyrics: `lyric_writers` (`protocols.LyricWriter`).
"""

from music_evals.deprecation import moved_modules

moved_modules(
    __name__,
    {
        "examples": "training.data",
        "music_encoders": "encoders.music",
        "precomputed": "encoders.precomputed",
        "recipe": "training.recipe",
        "roll_baselines": "baselines",
        "tag_recipe": "training.recipe",
        "tag_scores": "training.taggers",
        "tag_songs": "training.taggers",
        "tag_training": "training.taggers",
        "tensor_files": "layers.saving",
        "text_examples": "training.writers",
        "text_recipe": "training.recipe",
        "text_training": "training.writers",
    },
)
