"""`audit`: how negatives were drawn, and which `estimate` call fits them."""
