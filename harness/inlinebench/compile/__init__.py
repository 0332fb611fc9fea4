"""The build service: sources in, shared libraries out, through a content-addressed cache."""
