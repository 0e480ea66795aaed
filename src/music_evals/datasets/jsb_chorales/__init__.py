"""Builder of the data set jsb_chorales."""
