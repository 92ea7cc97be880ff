"""Tables in pages: their structure and the text of their cells."""
