"""What rooms and objects have in common: pictures as textures, smooth surfaces, light, and folders of views."""
