"""Settings of Sphinx; tools/docs/build.py assembles the source."""

project = "Tutti"
copyright = "the Tutti authors"  # noqa: A001, Sphinx requires this name
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Tutti"
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 4
root_doc = "index"
exclude_patterns = ["files"]
