"""Tabs that have the same image open."""

from __future__ import annotations

from annotator.ui.presence import FORGET_AFTER_S, Presence


def test_a_second_tab_on_the_same_image_is_noticed_by_both():
    presence = Presence(clock=lambda: 0.0)
    assert not presence.seen("a", 1)
    assert presence.seen("b", 1)
    assert presence.seen("a", 1)


def test_a_tab_on_another_image_is_not_noticed():
    presence = Presence(clock=lambda: 0.0)
    presence.seen("a", 1)
    assert not presence.seen("b", 2)


def test_a_silent_tab_is_forgotten():
    now = [0.0]
    presence = Presence(clock=lambda: now[0])
    presence.seen("a", 1)
    now[0] = FORGET_AFTER_S + 1
    assert not presence.seen("b", 1)
