"""What programs find out of songs before people annotate them, step by step; and songs that sound alike."""
