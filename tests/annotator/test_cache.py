"""The byte-bounded cache."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from annotator.cache import FeatureCache, ImageFeaturesCache
from engines.types import ImageFeatures


def sized(limit):
    return FeatureCache(limit, len)


def test_the_least_recently_used_value_is_forgotten_first():
    cache = sized(10)
    cache.put("a", "xxxx")
    cache.put("b", "xxxx")
    cache.get("a")
    cache.put("c", "xxxx")
    assert "a" in cache and "c" in cache and "b" not in cache


def test_a_value_larger_than_the_limit_is_kept_alone():
    cache = sized(10)
    cache.put("a", "xx")
    cache.put("big", "x" * 50)
    assert cache.get("big") == "x" * 50
    assert len(cache) == 1


def test_a_replaced_value_is_counted_once():
    cache = sized(10)
    cache.put("a", "xxxx")
    cache.put("a", "xx")
    assert cache.nbytes == 2


def test_an_unknown_key_gives_none():
    assert sized(10).get("a") is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12))), st.integers(1, 20))
def test_the_bytes_never_pass_the_limit_but_for_a_single_value(puts, limit):
    cache = sized(limit)
    for key, size in puts:
        cache.put(key, "x" * size)
        assert cache.nbytes <= limit or len(cache) == 1
        assert cache.get(key) == "x" * size


def test_features_on_a_device_are_counted_apart_and_can_be_forgotten_alone():
    cache = ImageFeaturesCache(100, 60)
    here = [ImageFeatures("b", f"here {n}", 1, 1, {}, 40) for n in range(2)]
    there = [ImageFeatures("b", f"there {n}", 1, 1, {}, 30, "cuda:0") for n in range(3)]
    for features in (*here, *there):
        cache.put(features.image_id, features)
    assert [cache.get(one.image_id) is one for one in (*here, *there)] == [True, True, False, True, True]
    assert cache.clear_device()
    assert not cache.clear_device()
    assert [cache.get(one.image_id) is one for one in (*here, *there)] == [True, True, False, False, False]
    cache.clear()
    assert cache.get("here 0") is None
