"""What programs find out of songs before people annotate them: lines in time, rhymes and a lead sheet."""
