"""Codes on disk: which images they hold, and where."""

import torch

from pdc_sfm.network import ImageCode
from pdc_sfm.retrieval.codes import CoarseCodes, CodeFolder


def codes_of(names):
    values = torch.tensor([[[[float(name)]]] for name in names]).half()
    return CoarseCodes(list(names), [(640, 480)] * len(names), ImageCode({4: values}, {}, (256, 256), (256, 256)))


def test_images_are_found_part_by_part_and_the_first_of_two_counts(tmp_path):
    folder = CodeFolder(tmp_path, {"network": "synthetic"})
    folder.add(codes_of(["1", "2", "3"]))
    folder.add(codes_of(["4", "2", "5"]))
    for known in (folder, CodeFolder(tmp_path, {"network": "synthetic"})):
        assert known.rows(["5", "3", "2", "7", "1", "3"]) == [(0, [0, 1, 2]), (1, [2])]
        assert known.missing(["7", "2", "5"]) == ["7"]
        assert known.read(1, [2]).code.features[4].item() == 5
