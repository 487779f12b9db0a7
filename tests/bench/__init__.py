"""Ratios against baselines, both sides measured in one run. Not tests: nothing here fails a build."""
