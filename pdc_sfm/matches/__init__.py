"""From a dense estimate to the matches of a pair: threshold, both directions, snapping to keypoints."""
