"""Figures as papers print them."""
