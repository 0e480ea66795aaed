"""Files of tunes whose notes are replaced in their bytes, elements or text: `symbolic.tunes` opens them."""
