"""Renderings of a report: for a terminal in ``report.table``, as a page in ``report.html``."""
