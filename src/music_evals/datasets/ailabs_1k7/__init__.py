"""Piano pieces as contexts of their upper line, for the check of VLI."""
