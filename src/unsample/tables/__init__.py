"""Any file or frame into evidence."""
