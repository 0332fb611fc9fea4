"""The kinds of device that solutions run on: what is built for each, and how."""
