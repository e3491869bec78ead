"""Building a data set from real material: captions, transcripts, videos."""
