"""What people do in a study: each act is one transaction that asks the rules and writes what they allow."""
