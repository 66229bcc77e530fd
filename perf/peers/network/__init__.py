"""Comparison of Tutti with other libraries over TCP; see run.py."""
