"""Networks, baselines and their training.

`anticipation_rnn` holds a network, `training` the loop that trains any network of this room from a recipe file, and
`baselines` what a network has to beat. Everything here speaks NoteSeq contexts and obeys `protocols.Inpainter`.
"""
