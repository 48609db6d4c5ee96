"""A query is matched with as many images of the map as its pose needs."""

import dataclasses

import pytest

from pdc_sfm.colmap.localization.evidence import PoseEvidence
from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings
from pdc_sfm.colmap.localization.probability import PoseProbability
from pdc_sfm.demo.query_pairs import choose_pairs
from pdc_sfm.store.pair_lists import read_retrieval

IMAGES = [f"{k}.jpg" for k in range(10)]
NOTHING = PoseEvidence(**{field.name: 0 for field in dataclasses.fields(PoseEvidence)})

# after 4 and after 8 images: the probability of the right place, how many images vouch for it, and the probability that it is
# known exactly there, where that is not 1; None: there is no pose
STORIES = {
    "sure": [(0.95, 3)],
    "sure_of_the_place": [(0.95, 3, 0.6)],
    "sure_later": [(0.7, 2), (0.92, 4)],
    "likely_and_no_more_vouch": [(0.7, 2), (0.7, 2)],
    "likely_and_more_vouch": [(0.7, 2), (0.75, 3)],
    "doubtful": [(0.4, 2), (0.4, 2)],
    "found_late": [None, (0.6, 2)],
    "never": [None, None],
}


@pytest.fixture
def choose(tmp_path):
    """Numbers of images that queries are matched with at last, and in each round before."""

    def counts(path):
        assert all(images == IMAGES[: len(images)] for images in read_retrieval(path).values())  # the best ones
        return {query: len(images) for query, images in read_retrieval(path).items()}

    def choose(retrieved, **settings):
        asked = []

        def judge(path):
            asked.append(counts(path))
            told = {query: STORIES[query][len(asked) - 1] for query in asked[-1]}
            return {
                query: one and PoseProbability(dataclasses.replace(NOTHING, images=one[1]), one[0], (*one, 1.0)[2])
                for query, one in told.items()
            }

        choose_pairs(retrieved, tmp_path / "pairs.txt", judge, LocalizationSettings(**settings))
        return counts(tmp_path / "pairs.txt"), asked

    return choose


def test_more_images_are_matched_while_a_pose_is_not_sure_and_they_help(choose):
    found, asked = choose(dict.fromkeys(STORIES, IMAGES))
    assert found == {
        "sure": 4,
        "sure_of_the_place": 4,
        "sure_later": 8,
        "likely_and_no_more_vouch": 8,
        "likely_and_more_vouch": 10,
        "doubtful": 10,
        "found_late": 10,
        "never": 10,
    }
    assert asked == [dict.fromkeys(STORIES, 4), dict.fromkeys(list(STORIES)[2:], 8)]


def test_all_are_matched_where_nothing_is_sure_enough(choose):
    assert choose(dict.fromkeys(STORIES, IMAGES), sure=1.0) == (dict.fromkeys(STORIES, 10), [])


def test_what_has_no_more_images_is_not_asked_about(choose):
    found, asked = choose({"sure": IMAGES[:2], "doubtful": IMAGES[:6], "never": IMAGES[:4]})
    assert found == {"sure": 2, "doubtful": 6, "never": 4}
    assert asked == [{"doubtful": 4}]
