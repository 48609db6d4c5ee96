"""The authors' files have had two names: either finds the other, and both are told."""

from dataclasses import replace

import pytest
from readme_commands import ROOT

from pdc_sfm.cli import main
from pdc_sfm.engine.weights_file import WeightsFile
from pdc_sfm.errors import CheckpointError
from pdc_sfm.hloc_plugin import confs
from pdc_sfm.network import COMPACT, PDCNet
from pdc_sfm.weights import read_checkpoint, save_network, weights_path
from pdc_sfm.weights.checkpoint import AUTHORS_NAMES

SMALL = replace(COMPACT, pyramid_channels=(8, 8, 8), decoder_channels=(8, 8, 8, 8, 8), refined_levels=())
PAIRS = [order for names in AUTHORS_NAMES for order in (names, names[::-1])]


@pytest.mark.parametrize(("there", "asked"), PAIRS)
def test_a_file_is_found_under_either_name(tmp_path, capsys, there, asked):
    save_network(tmp_path / there, PDCNet(SMALL))
    assert read_checkpoint(tmp_path / asked).path == tmp_path / there
    assert weights_path(str(tmp_path / asked)) == tmp_path / there
    assert WeightsFile.of(str(tmp_path / asked)) == WeightsFile.of(str(tmp_path / there))
    assert main(["weights", "inspect", str(tmp_path / asked)]) == 0
    assert there in capsys.readouterr().out


@pytest.mark.parametrize(("other", "asked"), PAIRS)
@pytest.mark.parametrize("read", [read_checkpoint, lambda path: WeightsFile.of(str(path))])
def test_where_neither_is_there_both_are_named(tmp_path, other, asked, read):
    with pytest.raises(CheckpointError, match=rf"{asked}: does not exist \(nor does {other}"):
        read(tmp_path / asked)


def test_the_file_that_was_named_comes_first(tmp_path):
    for name in AUTHORS_NAMES[0]:
        save_network(tmp_path / name, PDCNet(SMALL))
        assert weights_path(tmp_path / name) == tmp_path / name


def test_pages_tell_both_names_and_confs_use_one_of_them():
    for page, told in (("README.md", AUTHORS_NAMES), ("docs/hloc.md", AUTHORS_NAMES[:1])):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [name for names in told for name in names if name not in text] == []
    given = {conf["model"].get("weights") for conf in confs.values()} - {None}
    assert given <= {name for names in AUTHORS_NAMES for name in names}
