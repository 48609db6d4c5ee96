"""What people bring besides plain photographs, made into photographs: HEIC files of phones, videos, panoramas."""
