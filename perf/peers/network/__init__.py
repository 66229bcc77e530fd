"""Tutti beside its peers over TCP: see run.py."""
