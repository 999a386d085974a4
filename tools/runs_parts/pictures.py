"""Makes PNG pictures from pixels, as data URLs, so that a page contains its pictures."""

import base64
import struct
import zlib

SCALE_TO = 96  # small pictures are shown at least this wide


def png(width, height, channels, pixels):
    """Returns the bytes of a PNG file. `pixels`: one byte for each channel, row by row."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    size = width * channels
    rows = b"".join(b"\0" + pixels[y * size:(y + 1) * size] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def is_picture(value):
    """True for a picture as the programs write it: width, height, channels, and pixels as hexadecimal digits."""
    if not isinstance(value, dict) or not isinstance(value.get("pixels"), str):
        return False
    sizes = [value.get(key) for key in ("width", "height", "channels")]
    if not all(type(size) is int and 0 < size <= 4096 for size in sizes) or sizes[2] not in (1, 3):
        return False
    try:
        return len(bytes.fromhex(value["pixels"])) == sizes[0] * sizes[1] * sizes[2]
    except ValueError:
        return False


def image(picture, title):
    """Returns an <img> element. `title` must be escaped for HTML."""
    data = base64.b64encode(png(picture["width"], picture["height"], picture["channels"], bytes.fromhex(picture["pixels"]))).decode()
    width = max(picture["width"], SCALE_TO)
    return f'<img src="data:image/png;base64,{data}" width="{width}" alt="{title}" title="{title}">'
