"""The data set lakh_refinpaint: bars to be made anew, attached to the user's own copy of the Lakh MIDI data set."""
