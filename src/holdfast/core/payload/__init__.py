"""Values as stored text: the codec, the strict check before it, and errors as data."""
