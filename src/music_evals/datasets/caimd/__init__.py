"""The data set caimd: schema, releases, the demo of our own."""
