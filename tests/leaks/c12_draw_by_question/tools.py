"""Tools."""

from random import Random as Draw

USED = Draw
