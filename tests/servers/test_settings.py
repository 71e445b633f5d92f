"""Tests of settings in files and in startup options."""

from fuzz.servers.settings import lines, start_options


def test_values_of_any_characters_stay_one_value() -> None:
    settings = {"datestyle": "ISO, DMY", "search_path": r"a\b,'c'"}
    assert lines(settings) == "datestyle = 'ISO, DMY'\n" + r"search_path = 'a\\b,''c'''" + "\n"
    assert start_options(settings) == r"-c datestyle=ISO,\ DMY -c search_path=a\\b,'c'"
