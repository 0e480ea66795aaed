"""Studies with people in the browser: the page that participants see, and the server that keeps what they send."""
