"""The build service: builds sources into shared libraries, with a content-addressed cache."""
