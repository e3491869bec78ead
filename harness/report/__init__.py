"""A run as one page: read back (``story``, ``detail``), drawn (``charts``), rendered (``page``), served (``live``)."""
