"""Files through the version steps: text in, findings and text out."""
