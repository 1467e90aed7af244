"""Files that are opened in the browser. Whatever is sent is untrusted until it was read."""
