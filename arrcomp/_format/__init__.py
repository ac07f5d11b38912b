"""The bytes of a stream (native/FORMAT.md): header, checksum, frame, and limits on what they may claim."""
