"""Plugin of pytest: assertions about the arms in the tests of a patch author."""
