"""The ablation of the harness itself: the same search with a part of it switched off (LVMH, Figures 2 and 5)."""
