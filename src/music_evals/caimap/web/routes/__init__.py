"""The pages, a module for those who reach them; the routers of a module name the right that its pages need."""
