"""Music encoders: a recording in, one vector out."""
