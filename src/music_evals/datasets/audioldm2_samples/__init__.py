"""The data set audioldm2_samples: a recipe for sixty samples of AudioLDM 2 and an edit of each."""
