"""`key=value` words are taken wherever they stand on the command line."""

import pytest

from pdc_sfm.cli import main


@pytest.mark.parametrize(
    "words",
    [
        ["a.png", "b.png", "--output", "o.png", "dense.min_side=3"],
        ["a.png", "b.png", "dense.min_side=3", "--output", "o.png"],
        ["--output", "o.png", "a.png", "b.png", "dense.min_side=3"],
        ["a.png", "b.png", "select.threshold=0.2", "--output", "o.png", "dense.min_side=3"],
    ],
)
def test_settings_may_stand_before_and_after_options(words, capsys):
    assert main(["pair", *words]) == 2
    assert "min_side=3 must be at least 16" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["--outputs=o.png", "c.png"])
def test_other_words_are_refused(word, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["pair", "a.png", "b.png", "--output", "o.png", word])
    assert stop.value.code == 2
    assert f"unrecognized arguments: {word}" in capsys.readouterr().err
