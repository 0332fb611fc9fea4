"""Looks for solutions whose times or whose work are not what they seem."""
