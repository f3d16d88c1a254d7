"""Where models come from, what is known about them, and how they are stored."""
