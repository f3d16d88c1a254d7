"""Which source sentences speak about a claim: the index, the lexicon, records and tables."""
