"""Tests of PanJoin's subwindows."""
